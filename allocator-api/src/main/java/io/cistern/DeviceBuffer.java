package io.cistern;

import io.cistern.cuda.CudaException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// A block of device memory as an object, for try-with-resources.
///
/// ```java
/// try (DeviceBuffer x = DeviceBuffer.allocate(1 << 20, stream)) {
///     launch(x.address());
/// }                                    // ends in stream order: work enqueued before may still use it
/// ```
///
/// A buffer that is dropped without [#close] is a leak: nothing frees it behind the program's back, since work
/// on any stream may still use the memory. At [LeakLevel#SITES] and [LeakLevel#ALL] it is reported, with the
/// place that made it, when the garbage collector finds it.
///
/// **Threads.** Any thread may use or close it; of several closes one frees.
public final class DeviceBuffer implements AutoCloseable {
    private static final VarHandle ADDRESS = addressHandle();

    private final DeviceMemory memory;
    private final long byteSize;
    private final long stream;
    private final int device;

    /// 0 after closing.
    private volatile long address;

    private volatile boolean closed;

    private final Leaks.@Nullable BufferWatch watch;

    private DeviceBuffer(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        this.memory = memory;
        this.address = address;
        this.byteSize = byteSize;
        this.device = device;
        this.stream = stream;
        this.watch = memory.leakRecords().watch(this, address);
    }

    /// Allocates on device 0 from the current allocator of the process.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param stream the stream on which it is used first and on which it ends
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(long byteSize, long stream) {
        return allocate(byteSize, 0, stream);
    }

    /// Allocates from the current allocator of the process.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param device the device's ordinal
    /// @param stream the stream on which it is used first and on which it ends
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(long byteSize, int device, long stream) {
        return allocate(DeviceMemory.system(), byteSize, device, stream);
    }

    /// Allocates from the current allocator of other device memory than the process's own.
    ///
    /// @param memory where from
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param device the device's ordinal
    /// @param stream the stream on which it is used first and on which it ends
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(DeviceMemory memory, long byteSize, int device, long stream) {
        return new DeviceBuffer(memory, memory.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// The address of the first byte; 0 for a buffer of 0 bytes. Keep the buffer reachable and open until the
    /// work that uses the address has been enqueued.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public long address() {
        if (closed) {
            throw new IllegalStateException(this + " is closed");
        }
        return address;
    }

    /// Its length.
    public long byteSize() {
        return byteSize;
    }

    /// The device it lives on.
    public int device() {
        return device;
    }

    /// The stream it was made for and ends on.
    public long stream() {
        return stream;
    }

    /// Says that the buffer is also used on another stream, by work enqueued there until it is closed: see
    /// [DeviceMemory#recordUse].
    ///
    /// @param stream a stream of the buffer's device
    /// @throws IllegalStateException if the buffer is closed
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long stream) {
        memory.recordUse(address(), stream);
    }

    /// Frees the memory in the order of the buffer's stream, which still exists. Closing twice does nothing.
    ///
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread; the buffer is still
    ///     open then
    @Override
    public void close() {
        long taken = (long) ADDRESS.getAndSet(this, 0L);
        try {
            memory.free(taken, stream);
        } catch (UnusableStreamException refused) {
            address = taken;
            throw refused;
        } catch (UnknownAddressException freedBefore) {
            ended();
            throw freedBefore;
        }
        ended();
    }

    /// Frees the memory after an event of the program, as [DeviceMemory#freeAfter] does, instead of [#close()].
    /// Closing twice does nothing.
    ///
    /// @param event a `CUevent`, recorded after the last use
    /// @throws io.cistern.cuda.CudaException if the driver refuses the event; the buffer is still open then
    public void closeAfter(long event) {
        long taken = (long) ADDRESS.getAndSet(this, 0L);
        try {
            memory.freeAfter(taken, event);
        } catch (CudaException refused) {
            address = taken;
            throw refused;
        }
        ended();
    }

    private void ended() {
        closed = true;
        if (watch != null) {
            watch.close();
        }
    }

    /// Size, device and stream.
    @Override
    public String toString() {
        return "DeviceBuffer[" + byteSize + " bytes, device " + device + ", stream 0x" + Long.toHexString(stream) + "]";
    }

    private static VarHandle addressHandle() {
        try {
            return MethodHandles.lookup().findVarHandle(DeviceBuffer.class, "address", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
