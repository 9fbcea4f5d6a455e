package io.cistern.cuda;

import java.util.function.LongConsumer;

/// Devices and their primary contexts. Device ordinals run from 0 to [#count()] − 1.
///
/// Every method that takes a device throws [CudaException] with [CudaResult#INVALID_DEVICE] for an ordinal out of
/// range.
public interface Devices {
    /// How many devices the driver sees (`cuDeviceGetCount`).
    int count();

    /// The device's name for people (`cuDeviceGetName`).
    String name(int device);

    /// The device's UUID in the usual hexadecimal form (`cuDeviceGetUuid_v2`).
    String uuid(int device);

    /// The device's memory in bytes (`cuDeviceTotalMem_v2`).
    long totalBytes(int device);

    /// One attribute (`cuDeviceGetAttribute`); 0 for an attribute that this driver does not know.
    int attribute(int device, DeviceAttribute attribute);

    /// Whether this driver has the device's primary context already, because something was done there. Nothing is asked
    /// of the device, and no context is made.
    boolean isUsed(int device);

    /// The handle of the device's primary context, retained by this driver until it closes.
    long primaryContext(int device);

    /// Makes the device's primary context current on the calling OS thread, for native code that the caller calls
    /// next: it finds the context that every call of this driver runs in. Between this, that code and
    /// [#leaveContext] a virtual thread must not park.
    ///
    /// @return the context that was current, 0 for none; to be given to [#leaveContext]
    long enterContext(int device);

    /// Makes the context current again that was before [#enterContext], whatever native code did meanwhile. Where
    /// there was none, the primary context stays, so that the next call finds it.
    ///
    /// @param before what [#enterContext] returned
    void leaveContext(int device, long before);

    /// The device whose primary context is current on the calling OS thread (`cuCtxGetCurrent`). Another library may
    /// have made it current. A virtual thread must not park before it acts on the answer.
    ///
    /// @return its ordinal, or −1 if no context is current
    /// @throws CudaException [CudaResult#INVALID_CONTEXT] if the current context is no primary one
    int currentDevice();

    /// Has code called whenever the driver says that this process has more of a device's memory than its budget
    /// (`cuDeviceRegisterAsyncNotification`, CUDA 12.4). The code runs on a thread of the driver and is to
    /// hand over and return: it must not call the driver. What it throws is swallowed.
    ///
    /// @param whenOver is given the bytes over the budget
    /// @return what [#endOverBudget] takes
    /// @throws CudaException [CudaResult#NOT_SUPPORTED] if this driver or system tells nobody
    long onOverBudget(int device, LongConsumer whenOver);

    /// Ends that (`cuDeviceUnregisterAsyncNotification`); a call that has begun may go on.
    ///
    /// @param registration what [#onOverBudget] returned
    void endOverBudget(int device, long registration);

    /// Waits for all work of the device's primary context (`cuCtxSynchronize`).
    void synchronize(int device);
}
