package io.cistern.cuda;

import java.util.function.LongConsumer;

/// Describes devices and manages their primary contexts. Device ordinals run from 0 to [#count()] − 1.
///
/// Every method that takes a device throws [CudaException] with [CudaResult#INVALID_DEVICE] for an ordinal out of
/// range.
public interface Devices {
    /// Returns how many devices the driver sees (`cuDeviceGetCount`).
    int count();

    /// Returns the device's name, for example `NVIDIA H200` (`cuDeviceGetName`).
    String name(int device);

    /// Returns the device's UUID in the usual hexadecimal form (`cuDeviceGetUuid_v2`).
    String uuid(int device);

    /// Returns the device's memory in bytes (`cuDeviceTotalMem_v2`).
    long totalBytes(int device);

    /// Returns one attribute (`cuDeviceGetAttribute`), or 0 if this driver does not know it.
    int attribute(int device, DeviceAttribute attribute);

    /// Returns whether this driver has retained the device's primary context. Makes no driver call and
    /// creates no context.
    boolean isUsed(int device);

    /// Returns the handle of the device's primary context, which this driver retains until it closes.
    long primaryContext(int device);

    /// Makes the device's primary context current on the calling OS thread. Native code that the caller then
    /// calls runs in the same context as this driver's calls. A virtual thread must not park until it has
    /// called [#leaveContext].
    ///
    /// @return the context that was current before, 0 for none; pass it to [#leaveContext]
    long enterContext(int device);

    /// Restores the context that was current before [#enterContext], even if native code has changed it
    /// since. If no context was current before, the device's primary context stays current.
    ///
    /// @param before the result of [#enterContext]
    void leaveContext(int device, long before);

    /// Returns the device whose primary context is current on the calling OS thread (`cuCtxGetCurrent`).
    /// Another library may have made it current. A virtual thread must not park before it uses the result,
    /// because it may continue on another OS thread.
    ///
    /// @return its ordinal, or −1 if no context is current
    /// @throws CudaException [CudaResult#INVALID_CONTEXT] if the current context is not a primary one
    int currentDevice();

    /// Registers code to be called whenever the driver reports that this process holds more of a device's
    /// memory than its budget (`cuDeviceRegisterAsyncNotification`, CUDA 12.4). The code runs on a driver thread.
    /// It should pass the work to another thread and return, and must not call the driver. Exceptions that it
    /// throws are swallowed.
    ///
    /// @param whenOver receives the bytes over the budget
    /// @return the registration, for [#endOverBudget]
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] if this driver or system sends no such notices
    long onOverBudget(int device, LongConsumer whenOver);

    /// Ends a registration (`cuDeviceUnregisterAsyncNotification`). The registered code may still be running
    /// when this returns.
    ///
    /// @param registration the result of [#onOverBudget]
    void endOverBudget(int device, long registration);

    /// Waits for all work of the device's primary context (`cuCtxSynchronize`).
    void synchronize(int device);
}
