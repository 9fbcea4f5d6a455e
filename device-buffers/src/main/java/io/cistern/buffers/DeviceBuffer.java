package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.leaks.DropWatch;
import io.cistern.internal.leaks.Leaks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
/// on any stream may still use the memory. At [io.cistern.diagnostics.LeakLevel#SITES] and
/// [io.cistern.diagnostics.LeakLevel#ALL] it is reported, with the
/// place that made it, when the garbage collector finds it.
///
/// **Reachability.** So an address stays good until the buffer is closed, whether the buffer is reachable or not:
/// `launch(x.address())` needs no fence for the memory's sake. What a fence is needed for is that reports of
/// leaks, and code that closes buffers when the collector finds them, don't take a buffer for dropped while a call
/// still works with its address. [#withAddress] has that fence.
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
public final class DeviceBuffer extends BufferLife implements AutoCloseable {
    /// What every allocation's address is a multiple of.
    private static final long ALIGNMENT = 256;

    DeviceBuffer(
            DeviceMemory memory, long address, long byteSize, int device, long stream, @Nullable Lifetime lifetime) {
        super(memory, address, byteSize, device, stream, lifetime);
    }

    @Override
    DeviceBuffer self() {
        return this;
    }

    /// Allocates on device 0 from the current allocator of the process.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param stream the stream on which it is used first and on which it ends
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
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
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(long byteSize, int device, long stream) {
        return allocate(DeviceMemory.system(), byteSize, device, stream);
    }

    /// Allocates from the current allocator of a stream's device memory, for use on that stream.
    ///
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IllegalStateException if the stream is closed
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
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
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(DeviceMemory memory, long byteSize, int device, long stream) {
        return of(memory, memory.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// Allocates from an allocator, whichever is current and whatever scope the thread is in.
    ///
    /// @param from where from; one of a device memory that is not the process's own will do too
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param device the device's ordinal
    /// @param stream the stream on which it is used first and on which it ends
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the allocator is closed
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(Allocator from, long byteSize, int device, long stream) {
        return of(from.memory(), from.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// Allocates from a pool, whatever scope the thread is in: see
    /// [#allocate(Allocator, long, int, long)].
    ///
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the last use of the pool has ended
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocate(MemoryPool from, long byteSize, int device, long stream) {
        return of(from.memory(), from.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// Allocates from the current allocator at an address of the caller's alignment. Takes up to `byteAlignment` -
    /// 256 bytes more than asked for; where all buffers need it, open an allocator that aligns, such as
    /// `caching:alignment=4096`.
    ///
    /// @param byteAlignment what the address is a multiple of: a power of two; below 256 it is 256
    /// @throws IllegalArgumentException if `byteSize` is negative, or `byteAlignment` is no power of two
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public static DeviceBuffer allocateAligned(
            DeviceMemory memory, long byteSize, long byteAlignment, int device, long stream) {
        if (byteAlignment < 1 || Long.bitCount(byteAlignment) != 1) {
            throw new IllegalArgumentException("byteAlignment is no power of two: " + byteAlignment);
        }
        long spare = Math.max(0, byteAlignment - ALIGNMENT);
        if (byteSize <= 0 || spare == 0) {
            return allocate(memory, byteSize, device, stream);
        }
        if (byteSize > Long.MAX_VALUE - spare) {
            throw new DeviceOutOfMemoryException(byteSize, device, "no address space has so many");
        }
        try (DeviceBuffer whole = allocate(memory, byteSize + spare, device, stream)) {
            return whole.retained(-whole.address() & (byteAlignment - 1), byteSize, stream);
        }
    }

    /// A buffer for a block that the caller allocated, and hands over.
    static DeviceBuffer of(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        try {
            DeviceBuffer buffer = new DeviceBuffer(memory, address, byteSize, device, stream, null);
            if (memory.moduleSupport().leakLevel().compareTo(LeakLevel.SITES) >= 0) {
                watch(buffer, address);
            }
            return buffer;
        } catch (OutOfMemoryError full) {
            memory.free(address, stream);
            throw full;
        }
    }

    private static void watch(DeviceBuffer buffer, long address) {
        DropWatch watch = buffer.memory
                .moduleSupport()
                .attached(Leaks.class)
                .orElseThrow()
                .watch(buffer, address);
        if (watch != null) {
            buffer.lifetime = new WatchedBlock(watch);
        }
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
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached: what is foreign counts too
    public static DeviceBuffer ofForeign(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        return ofForeign(memory, address, byteSize, device, stream, (_, _) -> {});
    }

    /// Wraps memory that somebody else made, as
    /// [#ofForeign(DeviceMemory, long, long, int, long)] does, and tells its owner when it is used no more.
    ///
    /// @param owner is told once, when the buffer and all its retained slices are closed, unless there are 0
    ///     bytes; it stays reachable until then
    /// @throws IllegalArgumentException if the address is no multiple of 256, or there is a live block already;
    ///     the owner is not told then
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached; the owner is not told then
    public static DeviceBuffer ofForeign(
            DeviceMemory memory, long address, long byteSize, int device, long stream, ForeignOwner owner) {
        ForeignMemory foreign = BufferSupport.of(memory).foreign;
        return of(memory, foreign.register(address, byteSize, device, stream, owner), byteSize, device, stream);
    }

    /// Wraps memory of another library that counts it itself: it is not metered, no limit is asked, and no
    /// retained slice can be made. So it may begin anywhere, and lie in memory that is wrapped already, or that
    /// Cistern made.
    ///
    /// @param address the first byte, at any alignment
    /// @param byteSize its length
    /// @param device the device whose streams use it
    /// @param stream the stream on which it is used first
    /// @param owner is told once, when the buffer is closed, of 0 bytes too; if it throws, the close fails with
    ///     that and the buffer is still open
    /// @throws IllegalArgumentException if the address or the length is negative
    public static DeviceBuffer ofBorrowed(
            DeviceMemory memory, long address, long byteSize, int device, long stream, ForeignOwner owner) {
        if (address < 0 || byteSize < 0) {
            throw new IllegalArgumentException("no memory: " + byteSize + " bytes at 0x" + Long.toHexString(address));
        }
        return new DeviceBuffer(memory, address, byteSize, device, stream, new BorrowedMemory(owner));
    }

    /// Hears that memory of [others][#ofForeign(DeviceMemory, long, long, int, long, ForeignOwner)] is used no
    /// more.
    @FunctionalInterface
    public interface ForeignOwner {
        /// Takes the memory back. Called on the thread that closes the buffer. What it throws is logged, or, for
        /// memory that is [borrowed][#ofBorrowed], thrown by the close.
        ///
        /// @param address the first byte of the block
        /// @param stream a stream of its device, which is given work from now on only after all that used the
        ///     block
        void release(long address, long stream);
    }

    /// Hands the address to code, and keeps the buffer reachable until that returns.
    ///
    /// @throws IllegalStateException if the buffer is closed
    public void withAddress(LongConsumer code) {
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

    /// Returns the allocator that made the memory; for a slice, that of the whole block.
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.errors.UnknownAddressException if it has no memory, or its block was freed by its
    ///     address
    public Allocator allocator() {
        return memory.ownerOf(block());
    }

    /// Allocates a buffer of the same size, device and stream from the current allocator, and copies this one to
    /// it in the order of the stream.
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    public DeviceBuffer copy() {
        return copiedTo(allocate(memory, byteSize, device, stream));
    }

    private DeviceBuffer copiedTo(DeviceBuffer larger) {
        try {
            larger.slice(0, byteSize).copyFrom(this, stream);
            return larger;
        } catch (Throwable failure) {
            larger.close();
            throw failure;
        }
    }

    /// Returns a buffer of another size with the same contents, and closes this one. A smaller one keeps the
    /// block; for a larger one the allocator that made this one makes another block, to which the contents are
    /// copied in the order of the stream. What is new is not set.
    ///
    /// @param newByteSize bytes wanted
    /// @throws IllegalArgumentException if it is negative
    /// @throws IllegalStateException if the buffer, or for a larger one its allocator, is closed
    /// @throws UnsupportedOperationException if the buffer is a view, an arena's, borrowed, or, to be larger,
    ///     foreign
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no such memory, or a limit is reached;
    ///     this one is still open then
    public DeviceBuffer resize(long newByteSize) {
        if (newByteSize < 0) {
            throw new IllegalArgumentException("newByteSize is negative: " + newByteSize);
        }
        if (newByteSize > byteSize) {
            requireOwner();
            DeviceBuffer larger = byteSize == 0
                    ? allocate(memory, newByteSize, device, stream)
                    : copiedTo(allocate(allocator(), newByteSize, device, stream));
            close();
            return larger;
        }
        return handedOver(newByteSize, stream);
    }

    /// Returns a buffer of the same memory that is used and ends on another stream, and closes this one. What that
    /// stream is given from now on comes after all that this buffer's stream has been given.
    ///
    /// @param newStream a stream of the buffer's device
    /// @throws IllegalStateException if the buffer is closed
    /// @throws UnsupportedOperationException if the buffer is a view, an arena's, or borrowed
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the buffer is still open then
    public DeviceBuffer moveToStream(long newStream) {
        requireOwner();
        address();
        DeviceCopies.order(memory.driver(), device, stream, device, newStream);
        return handedOver(byteSize, newStream);
    }

    private DeviceBuffer handedOver(long newByteSize, long newStream) {
        DeviceBuffer next = retained(0, newByteSize, newStream);
        close();
        return next;
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
    /// @throws UnsupportedOperationException if the buffer is a view, an arena's, or borrowed: it can't keep alive
    ///     what it does not own
    public DeviceBuffer retainedSlice(long offset, long size) {
        Objects.checkFromIndexSize(offset, size, byteSize);
        return retained(offset, size, stream);
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

    /// Copies pinned memory to the beginning of the buffer in the order of a stream. The pinned buffer may be
    /// closed at once: it is used again only after the copy.
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

    /// Copies another buffer to the beginning of this one, without waiting on the host: on this buffer's stream,
    /// and after what the other one's has been given; between two GPUs on the source's stream, in order with both.
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

    /// Sets every 32-bit word, on the buffer's stream. For other types see [DeviceElements].
    ///
    /// @param value the bits of a word, in the order of the device's bytes
    /// @throws IllegalArgumentException if its address or its length is no multiple of 4
    /// @throws IllegalStateException if the buffer is closed
    public void fillWords(int value) {
        fillWords(value, stream);
    }

    /// Sets every 32-bit word in the order of a stream.
    ///
    /// @param value the bits of a word, in the order of the device's bytes
    /// @throws IllegalArgumentException if its address or its length is no multiple of 4
    /// @throws IllegalStateException if the buffer is closed
    public void fillWords(int value, long stream) {
        long start = address();
        if (start % Integer.BYTES != 0 || byteSize % Integer.BYTES != 0) {
            throw new IllegalArgumentException(this + " at 0x" + Long.toHexString(start) + " is not whole words");
        }
        memory.driver().copies().fillWords(device, addressOn(stream), value, byteSize / Integer.BYTES, stream);
    }

    /// Size, device and stream.
    @Override
    public String toString() {
        return "DeviceBuffer[" + byteSize + " bytes, device " + device + ", stream 0x" + Long.toHexString(stream) + "]";
    }
}
