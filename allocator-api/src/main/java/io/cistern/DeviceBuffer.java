package io.cistern;

import io.cistern.cuda.CudaException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/// A block of device memory as an object, for try-with-resources.
///
/// ```java
/// try (DeviceBuffer x = DeviceBuffer.allocate(1 << 20, stream)) {
///     x.copyFrom(MemorySegment.ofArray(floats));
///     launch(x.address());
/// }                                    // ends in stream order: work enqueued before may still use it
/// ```
///
/// A buffer that is dropped without [#close] is a leak: nothing frees it behind the program's back, since work
/// on any stream may still use the memory. At [LeakLevel#SITES] and [LeakLevel#ALL] it is reported, with the
/// place that made it, when the garbage collector finds it.
///
/// **Reachability.** So an address stays good until the buffer is closed, whether the buffer is reachable or not:
/// `launch(x.address())` needs no fence for the memory's sake. What a fence is needed for is that reports of
/// leaks, and code that closes buffers when the collector finds them, don't take a buffer for dropped while a call
/// still works with its address. [#use] has that fence.
///
/// **Ends.** Closing twice does nothing. Every other use of a closed buffer is an [IllegalStateException], and
/// so is a use of a slice whose parent is closed, or of an arena's buffer after the arena was reset.
///
/// **Slices.** [#slice] gives a view for as long as its parent lives, which needs no close; [#retainedSlice] gives
/// one that keeps the memory alive itself.
///
/// **Streams.** A buffer is used on its own stream without further ado. Copies and launches on another stream note
/// that by themselves ([#recordUse]); work that gets the bare address there has to be noted, or ordered.
///
/// **Threads.** Any thread may use or close it, virtual threads too; of several closes one frees. The per-thread
/// default stream is another one on each thread: a buffer made for it is closed where it was made.
///
/// **Size.** One object of 48 bytes.
public final class DeviceBuffer implements AutoCloseable {
    /// Below 0 are no addresses: its states are kept here, so that the object stays at 48 bytes.
    private static final long CLOSED = -1;

    /// A thread is replacing the lifetime.
    private static final long BUSY = -2;

    private static final VarHandle ADDRESS = addressHandle();

    private final DeviceMemory memory;
    private final long byteSize;
    private final long stream;
    private final int device;

    /// Or a state.
    private volatile long address;

    /// Written while the address is [#BUSY].
    private @Nullable Lifetime lifetime;

    DeviceBuffer(
            DeviceMemory memory, long address, long byteSize, int device, long stream, @Nullable Lifetime lifetime) {
        this.memory = memory;
        this.byteSize = byteSize;
        this.device = device;
        this.stream = stream;
        this.lifetime = lifetime;
        ADDRESS.setRelease(this, address);
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

    /// Allocates from the current allocator of a stream's device memory, for use on that stream.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the stream is closed
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(long byteSize, CudaStream stream) {
        return allocate(stream.memory(), byteSize, stream.device(), stream.handle());
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
        return of(memory, memory.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// A buffer for a block that the caller allocated, and hands over.
    static DeviceBuffer of(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        DeviceBuffer buffer = new DeviceBuffer(memory, address, byteSize, device, stream, null);
        if (memory.leakRecords().watchesBuffers()) {
            buffer.lifetime = memory.leakRecords().watch(buffer, address);
        }
        return buffer;
    }

    /// A buffer for memory that somebody else made and will free, such as another library. It is metered, as of an
    /// allocator named `foreign`, until the buffer is closed, which ends nothing but the metering; the owner
    /// frees the memory after that.
    ///
    /// @param address the first byte of the block, a multiple of 256 as of all allocations
    /// @param byteSize its length
    /// @param device the device it lies on
    /// @param stream the stream on which it is used first
    /// @throws IllegalArgumentException if the address is no multiple of 256, or there is a live block already
    /// @throws DeviceOutOfMemoryException if a limit is reached: what is foreign counts too
    public static DeviceBuffer ofForeign(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        return of(memory, memory.foreign().register(address, byteSize, device, stream), byteSize, device, stream);
    }

    /// The address of the first byte; 0 for a buffer of 0 bytes. It is good until the buffer is closed: enqueue the
    /// work that uses it before.
    ///
    /// @throws IllegalStateException if the buffer is closed, or its parent or arena ended
    /// @throws MemoryAsleepException if its pool is [asleep][MemoryPool#sleep], as whatever else uses the memory
    public long address() {
        long present = address;
        if (present < 0) {
            return addressOfState();
        }
        Lifetime depends = lifetime;
        if (depends != null && depends.isOver()) {
            throw new IllegalStateException(this + " can't be used: " + depends.whatEnded());
        }
        if (memory.anyAsleep) {
            memory.requireAwake(depends == null ? present : depends.block(present));
        }
        return present;
    }

    private long addressOfState() {
        while (address == BUSY) {
            Thread.onSpinWait();
        }
        if (address == CLOSED) {
            throw new IllegalStateException(this + " is closed");
        }
        return address();
    }

    /// Hands the address to code, and keeps the buffer reachable until that returns.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public void use(LongConsumer code) {
        try {
            code.accept(address());
        } finally {
            Reference.reachabilityFence(this);
        }
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

    /// The device memory that it belongs to.
    public DeviceMemory memory() {
        return memory;
    }

    /// Whether it can't be used any more.
    public boolean isClosed() {
        if (address == CLOSED) {
            return true;
        }
        Lifetime depends = lifetime;
        return depends != null && depends.isOver();
    }

    /// A part of the buffer, as a view: it needs no close, and ends with its parent, which it keeps reachable.
    ///
    /// @throws IndexOutOfBoundsException if the part is not inside
    /// @throws IllegalStateException if the buffer is closed
    public DeviceBuffer slice(long offset, long size) {
        Objects.checkFromIndexSize(offset, size, byteSize);
        long start = size == 0 ? 0 : address() + offset;
        return new DeviceBuffer(memory, start, size, device, stream, new ParentBuffer(this));
    }

    /// A part of the buffer that keeps the memory alive: the block is freed when the buffer and all its retained
    /// slices are closed, in whatever order.
    ///
    /// @throws IndexOutOfBoundsException if the part is not inside
    /// @throws IllegalStateException if the buffer is closed
    /// @throws UnsupportedOperationException if the buffer is a view or an arena's: it can't keep alive what
    ///     it does not own
    public DeviceBuffer retainedSlice(long offset, long size) {
        Objects.checkFromIndexSize(offset, size, byteSize);
        long start = beginChange();
        try {
            lifetime = shared(start);
        } finally {
            address = start;
        }
        return new DeviceBuffer(memory, size == 0 ? 0 : start + offset, size, device, stream, lifetime);
    }

    private SharedBlock shared(long start) {
        SharedBlock block = switch (lifetime) {
            case SharedBlock already -> already;
            case Leaks.BufferWatch watch -> {
                watch.end();
                yield new SharedBlock(start);
            }
            case null -> new SharedBlock(start);
            default ->
                throw new UnsupportedOperationException(
                        this + " does not own its memory: take the slice of the buffer that does");
        };
        block.retain();
        return block;
    }

    /// Keeps closes and changes of others out until the address is written again.
    private long beginChange() {
        while (true) {
            long present = address();
            if (ADDRESS.compareAndSet(this, present, BUSY)) {
                return present;
            }
        }
    }

    /// The buffer as elements of one type.
    ///
    /// @throws IllegalArgumentException if its length is no multiple of the layout's
    public DeviceElements elements(ValueLayout layout) {
        return new DeviceElements(this, layout);
    }

    /// The buffer, or a part of it, as rows that lie apart.
    ///
    /// @param offset of the first row
    /// @param pitch bytes from the beginning of a row to that of the next
    /// @param rowBytes bytes of a row
    /// @param rows how many rows
    /// @throws IndexOutOfBoundsException if they are not inside
    /// @throws IllegalArgumentException if rows overlap
    public DeviceRows rows(long offset, long pitch, long rowBytes, long rows) {
        return new DeviceRows(this, offset, pitch, rowBytes, rows);
    }

    /// Says that the buffer is also used on another stream, by work enqueued there until it is closed: see
    /// [DeviceMemory#recordUse]. For a part of a block it is said of the whole.
    ///
    /// @param stream a stream of the buffer's device
    /// @throws IllegalStateException if the buffer is closed
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long stream) {
        memory.recordUse(block(), stream);
        usedOnAnotherStream();
    }

    void usedOnAnotherStream() {
        Lifetime depends = lifetime;
        if (depends != null) {
            depends.usedOnAnotherStream();
        }
    }

    /// The address for work on a stream, whose use is recorded if it is not the buffer's own.
    long addressOn(long workStream) {
        long present = address();
        if (workStream != stream && present != 0) {
            recordUse(workStream);
        }
        return present;
    }

    /// Copies host memory to the beginning of the buffer, on its stream, and waits until it is there.
    ///
    /// @param source native memory, or an array by [MemorySegment#ofArray(float[])]
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyFrom(MemorySegment source) {
        copyFrom(source, stream, CopyMode.BLOCKING);
    }

    /// Copies what remains of a buffer of the JDK, as [#copyFrom(MemorySegment)]; its position stays.
    public void copyFrom(Buffer source) {
        copyFrom(MemorySegment.ofBuffer(source));
    }

    /// Copies host memory to the beginning of the buffer in the order of a stream.
    ///
    /// @param source see [CopyMode] for how long it must stay as it is
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyFrom(MemorySegment source, long stream, CopyMode mode) {
        HostCopies.toDevice(this, source, stream, mode);
    }

    /// Copies pinned memory to the beginning of the buffer in the order of a stream. The pinned buffer may be closed
    /// at once: it is used again only after the copy.
    ///
    /// @throws IndexOutOfBoundsException if it is longer than the buffer
    /// @throws IllegalStateException if one of them is closed
    public void copyFrom(PinnedBuffer source, long stream, CopyMode mode) {
        source.recordUse(device, stream);
        HostCopies.toDevice(this, source.segment(), stream, mode);
    }

    /// Copies the buffer to host memory, on its stream, and waits until it is there.
    ///
    /// @param target native memory, or an array by [MemorySegment#ofArray(float[])]
    /// @throws IndexOutOfBoundsException if it is shorter than the buffer
    /// @throws IllegalArgumentException if it is read-only
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyTo(MemorySegment target) {
        copyTo(target, stream, CopyMode.BLOCKING);
    }

    /// Copies to what remains of a buffer of the JDK, as [#copyTo(MemorySegment)]; its position stays.
    public void copyTo(Buffer target) {
        copyTo(MemorySegment.ofBuffer(target));
    }

    /// Copies the buffer to host memory in the order of a stream.
    ///
    /// @param target see [CopyMode] for when it may be looked at
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if it is shorter than the buffer
    /// @throws IllegalArgumentException if it is read-only, or on the heap and the copy is not blocking: the
    ///     collector may move what is on the heap
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyTo(MemorySegment target, long stream, CopyMode mode) {
        HostCopies.toHost(this, target, stream, mode);
    }

    /// Copies the buffer to pinned memory in the order of a stream.
    ///
    /// @throws IndexOutOfBoundsException if it is shorter than the buffer
    /// @throws IllegalStateException if one of them is closed
    public void copyTo(PinnedBuffer target, long stream, CopyMode mode) {
        target.recordUse(device, stream);
        HostCopies.toHost(this, target.segment(), stream, mode);
    }

    /// Copies another buffer to the beginning of this one, without waiting on the host: on this buffer's stream, and
    /// after what the other one's has been given; between two GPUs on the source's stream, in order with both.
    ///
    /// @throws IndexOutOfBoundsException if it is longer than this one
    /// @throws IllegalArgumentException if they overlap
    /// @throws IllegalStateException if one of them is closed
    public void copyFrom(DeviceBuffer source) {
        DeviceCopies.inOrder(this, source);
    }

    /// Copies another buffer to the beginning of this one in the order of one stream; the program orders others.
    ///
    /// @param stream a stream of the source's device
    /// @throws IndexOutOfBoundsException if it is longer than this one
    /// @throws IllegalArgumentException if they overlap
    /// @throws IllegalStateException if one of them is closed
    public void copyFrom(DeviceBuffer source, long stream) {
        DeviceCopies.on(this, source, stream);
    }

    /// Sets every byte, on the buffer's stream.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public void fill(byte value) {
        fill(value, stream);
    }

    /// Sets every byte in the order of a stream.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public void fill(byte value, long stream) {
        memory.driver().copies().fillBytes(device, addressOn(stream), value, byteSize, stream);
    }

    /// Frees the memory in the order of the buffer's stream, which still exists. Closing twice does nothing.
    ///
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread; the buffer is still
    ///     open then
    /// @throws UnknownAddressException if the block was freed by its address before; the buffer is closed then
    @Override
    public void close() {
        long taken = take();
        if (taken == CLOSED) {
            return;
        }
        Lifetime depends = lifetime;
        try {
            if (depends == null) {
                memory.free(taken, stream);
            } else {
                depends.close(this, taken);
            }
        } catch (UnusableStreamException refused) {
            address = taken;
            throw refused;
        }
    }

    /// Frees the memory after an event of the program, as [DeviceMemory#freeAfter] does, instead of [#close()].
    /// Closing twice does nothing.
    ///
    /// @param event a `CUevent`, recorded after the last use
    /// @throws CudaException if the driver refuses the event; the buffer is still open then
    /// @throws UnknownAddressException if the block was freed by its address before; the buffer is closed then
    public void closeAfter(long event) {
        long taken = take();
        if (taken == CLOSED) {
            return;
        }
        Lifetime depends = lifetime;
        try {
            if (depends == null) {
                memory.freeAfter(taken, event);
            } else {
                depends.closeAfter(this, taken, event);
            }
        } catch (CudaException refused) {
            address = taken;
            throw refused;
        }
    }

    private long take() {
        while (true) {
            long taken = address;
            if (taken == CLOSED || (taken != BUSY && ADDRESS.compareAndSet(this, taken, CLOSED))) {
                return taken;
            }
            Thread.onSpinWait();
        }
    }

    /// The address of the block that the buffer lies in.
    ///
    /// @throws IllegalStateException if the buffer is closed
    long block() {
        long present = address();
        Lifetime depends = lifetime;
        return depends == null ? present : depends.block(present);
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
