package io.cistern;

/// Static methods for the process's own device memory, [DeviceMemory#system()]. A stream is a `CUstream`
/// handle, as [CudaStream#handle] returns it; 0 is the legacy default stream.
///
/// ```java
/// Allocators.setCurrent("async");               // or -Dcistern.allocator=async, or CISTERN_ALLOCATOR=async
/// long address = Allocators.allocate(1 << 20, 0, stream);
/// Allocators.free(address, stream);
/// ```
///
/// **Threads.** Any thread, even a virtual one, may call any method at any time.
public final class Allocators {
    private Allocators() {}

    /// Returns the current allocator of device 0, which serves [#allocate] on that device outside all
    /// scopes. It is the allocator that the program has made current, else the one that the setting
    /// `cistern.device.0.allocator` or `cistern.allocator` names, else the available one with the highest
    /// priority.
    ///
    /// @throws io.cistern.errors.ConfigurationException if the program has made no allocator current, and
    ///     none can be chosen or the chosen one can't be opened
    public static Allocator current() {
        return DeviceMemory.system().current(0);
    }

    /// Opens an allocator from a spec and makes it current for all devices: see [DeviceMemory#setCurrent].
    ///
    /// @param spec `NAME` or `NAME:key=value,…`, such as `async` or `caching:page_size=2MiB`: see
    ///     [DeviceMemory#open(String)]
    /// @throws io.cistern.errors.ConfigurationException if the spec is invalid, or its allocator can't run
    ///     here; the current allocator does not change then
    public static Allocator setCurrent(String spec) {
        return DeviceMemory.system().setCurrent(spec);
    }

    /// Allocates from the allocator of the innermost [Scope] that serves this device and stream, else from
    /// the current allocator: see [DeviceMemory#allocate].
    ///
    /// @param byteSize the requested bytes; 0 returns address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first
    /// @return an address that is a multiple of 256
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is too little memory, or a limit refuses
    ///     the request
    public static long allocate(long byteSize, int device, long stream) {
        return DeviceMemory.system().allocate(byteSize, device, stream);
    }

    /// Frees a block, by returning it to the allocator that made it: see [DeviceMemory#free].
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param stream the stream of the block's last use
    /// @throws io.cistern.errors.UnknownAddressException if no live block begins there
    public static void free(long address, long stream) {
        DeviceMemory.system().free(address, stream);
    }

    /// Frees a block after a CUDA event: the block's memory may be reused once the event has completed. See
    /// [DeviceMemory#freeAfter].
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param event a `CUevent`, recorded after the last use
    /// @throws io.cistern.errors.UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event; nothing is freed
    ///     then
    public static void freeAfter(long address, long event) {
        DeviceMemory.system().freeAfter(address, event);
    }

    /// Records that a block is also used on another stream, by work that is enqueued there before the block
    /// is freed: see [DeviceMemory#recordUse].
    ///
    /// @param address an address that an allocation returned; 0 does nothing
    /// @param stream a stream of the block's device
    /// @throws io.cistern.errors.UnknownAddressException if no live block begins there
    /// @throws io.cistern.errors.UnusableStreamException if `stream` is the per-thread default stream and
    ///     the caller is a virtual thread
    public static void recordUse(long address, long stream) {
        DeviceMemory.system().recordUse(address, stream);
    }

    /// Announces to all allocators that a stream is about to be destroyed: see
    /// [DeviceMemory#streamClosing].
    public static void streamClosing(int device, long stream) {
        DeviceMemory.system().streamClosing(device, stream);
    }
}
