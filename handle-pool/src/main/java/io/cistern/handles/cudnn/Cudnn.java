package io.cistern.handles.cudnn;

import io.cistern.DeviceMemory;
import io.cistern.handles.HandlePool;
import io.cistern.handles.HandlePoolOptions;
import io.cistern.handles.internal.RealDevices;
import io.cistern.spi.Availability;

/// Provides cuDNN's handles, for code that calls the library itself.
///
/// ```java
/// try (Cudnn cudnn = Cudnn.open(memory)) {
///     long handle = cudnn.pool().handle(device, stream).value();      // a cudnnHandle_t with the stream set
/// }
/// ```
///
/// The library is found at run time, under the setting `cistern.cudnn.library`, else as `libcudnn.so.9` or
/// `libcudnn.so.8`. It needs a real GPU. Its calls take workspaces as arguments; allocate those from the device
/// memory.
///
/// **Threads.** Any thread may call any method at any time.
public final class Cudnn implements AutoCloseable {
    private final CudnnLibrary library;
    private final HandlePool<CudnnHandle> pool;

    private Cudnn(DeviceMemory memory, CudnnLibrary library, HandlePoolOptions options) {
        this.library = library;
        pool = HandlePool.open(memory, library, options);
    }

    /// Returns whether the library can be loaded and, if not, why and what to do about it.
    public static Availability availability() {
        try {
            CudnnLibrary.find();
            return Availability.yes();
        } catch (UnsupportedOperationException absent) {
            return Availability.no(String.valueOf(absent.getMessage()));
        }
    }

    /// Opens cuDNN with a pool of the [default options][HandlePoolOptions#DEFAULT]. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static Cudnn open(DeviceMemory memory) {
        return open(memory, HandlePoolOptions.DEFAULT);
    }

    /// Opens cuDNN. No handle is created yet.
    ///
    /// @throws UnsupportedOperationException if the library can't be loaded or the device memory is simulated,
    ///     with what to do about it
    public static Cudnn open(DeviceMemory memory, HandlePoolOptions options) {
        RealDevices.require(memory, "cuDNN");
        return open(memory, CudnnLibrary.find(memory.driver().devices()), options);
    }

    static Cudnn open(DeviceMemory memory, CudnnLibrary library, HandlePoolOptions options) {
        return new Cudnn(memory, library, options);
    }

    /// Returns the pool of handles.
    public HandlePool<CudnnHandle> pool() {
        return pool;
    }

    /// Returns the version as `cudnnGetVersion` codes it: since version 9, 10000 × major + 100 × minor + patch.
    public long version() {
        return library.version();
    }

    /// Closes the pool, as [HandlePool#close] does. Work that was enqueued on streams goes on. Closing twice
    /// does nothing.
    ///
    /// @throws IllegalStateException if leases stay open for too long
    @Override
    public void close() {
        pool.close();
    }
}
