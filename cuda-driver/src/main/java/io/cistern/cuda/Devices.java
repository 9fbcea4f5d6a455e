package io.cistern.cuda;

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

    /// The handle of the device's primary context, retained by this driver until it closes.
    long primaryContext(int device);

    /// Makes a device's primary context current on the calling OS thread, for calls of another CUDA library that
    /// follow at once: between this and [#leaveContext] a virtual thread must not park.
    ///
    /// @return the foreign context that was current, to be given to [#leaveContext]; 0 if there was none
    long enterContext(int device);

    /// Makes a foreign context current again. Without one the primary context stays current, as after every call
    /// of the driver.
    ///
    /// @param foreign what [#enterContext] returned
    void leaveContext(long foreign);

    /// Waits for all work of the device's primary context (`cuCtxSynchronize`).
    void synchronize(int device);
}
