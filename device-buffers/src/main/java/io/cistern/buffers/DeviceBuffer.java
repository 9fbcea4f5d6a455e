package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.LastStreams;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.leaks.DropWatch;
import io.cistern.internal.leaks.Leaks;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
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
/// A buffer that is dropped without [#close] is a leak: nothing frees it, since work on any stream may
/// still use the memory. At the leak levels [io.cistern.diagnostics.LeakLevel#SITES] and
/// [io.cistern.diagnostics.LeakLevel#ALL], the leak is reported with the place that allocated the buffer,
/// once the garbage collector has found the buffer unreachable.
///
/// **Reachability.** An address stays valid until the buffer is closed, even if the buffer becomes
/// unreachable: `launch(x.address())` needs no reachability fence to keep the memory. But a leak report, or
/// code of your own that closes unreachable buffers, may treat a buffer as dropped while a call still uses
/// its address. [#withAddress] prevents that with a reachability fence.
///
/// **After the close.** Closing twice does nothing. Any other method that needs a closed buffer's
/// memory throws an [IllegalStateException]. So does a slice whose parent is closed, and an arena's
/// buffer after the arena was reset or closed.
///
/// **Slices.** [#slice] returns a view that lives as long as its parent and needs no close; [#retainedSlice]
/// returns a slice that keeps the memory alive itself.
///
/// **Streams.** Work on the buffer's own stream needs no announcement. Copies and launches of this library
/// on another stream record that use themselves ([#recordUse]). If other work uses the bare address on
/// another stream, the program must record the use or order the streams.
///
/// **Threads.** Any thread, virtual threads included, may use or close a buffer; of several concurrent
/// closes, only one frees the memory. The per-thread default stream is a different stream on each thread,
/// so close a buffer of that stream on the thread that allocated the buffer.
///
/// **Size.** A buffer that has its block to itself is one Java object of 48 bytes, with compressed
/// references and at leak levels below [io.cistern.diagnostics.LeakLevel#SITES].
public final class DeviceBuffer implements AutoCloseable {
    /// The alignment of every allocation.
    private static final long ALIGNMENT = 256;

    // address ≥ 0 ──beginChange──▶ BUSY ──▶ address ≥ 0      the lifetime is replaced
    //      └────────take─────────▶ CLOSED                    back only if the end was refused
    // If several threads close a buffer, the thread whose compare-and-set succeeds frees it.

    /// No address is below 0, so the address field also holds the states. That keeps the object at 48 bytes.
    private static final long CLOSED = -1;

    /// A thread is replacing the lifetime.
    private static final long BUSY = -2;

    private static final AtomicLongFieldUpdater<DeviceBuffer> ADDRESS =
            AtomicLongFieldUpdater.newUpdater(DeviceBuffer.class, "address");

    private final DeviceMemory memory;
    private final long byteSize;
    private final long stream;
    private final int device;

    /// The address, or one of the states above.
    private volatile long address;

    /// Null if the buffer owns its block alone. Written only while the address is [#BUSY].
    @Nullable
    Lifetime lifetime;

    DeviceBuffer(
            DeviceMemory memory, long address, long byteSize, int device, long stream, @Nullable Lifetime lifetime) {
        this.memory = memory;
        this.byteSize = byteSize;
        this.device = device;
        this.stream = stream;
        this.lifetime = lifetime;
        ADDRESS.lazySet(this, address);
    }

    /// Allocates on device 0 from the current allocator of the process: see [#allocate(DeviceMemory, long, int, long)].
    public static DeviceBuffer allocate(long byteSize, long stream) {
        return allocate(byteSize, 0, stream);
    }

    /// Allocates from the current allocator of the process: see [#allocate(DeviceMemory, long, int, long)].
    public static DeviceBuffer allocate(long byteSize, int device, long stream) {
        return allocate(DeviceMemory.system(), byteSize, device, stream);
    }

    /// Allocates from the current allocator of a stream's device memory, for use on that stream: see
    /// [#allocate(DeviceMemory, long, int, long)].
    ///
    /// @throws IllegalStateException if the stream is closed
    public static DeviceBuffer allocate(long byteSize, CudaStream stream) {
        return allocate(stream.memory(), byteSize, stream.device(), stream.handle());
    }

    /// Allocates room for elements, as [#allocate(long, CudaStream)] does for bytes.
    ///
    /// @param count number of elements
    /// @throws IllegalArgumentException if `count` is negative
    /// @throws ArithmeticException if the size in bytes does not fit in a `long`
    public static DeviceBuffer allocate(long count, MemoryLayout layout, CudaStream stream) {
        if (count < 0) {
            throw new IllegalArgumentException("count is negative: " + count);
        }
        return allocate(Math.multiplyExact(count, layout.byteSize()), stream);
    }

    /// Allocates from the current allocator of the given device memory.
    ///
    /// @param memory the device memory to allocate from
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param device the device's ordinal
    /// @param stream the stream on which the buffer is used first, and in whose order it is freed
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public static DeviceBuffer allocate(DeviceMemory memory, long byteSize, int device, long stream) {
        return of(memory, memory.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// Allocates from the given allocator or pool, regardless of the current one and of the thread's scope.
    ///
    /// @param from the allocator; its device memory need not be the process's own
    /// @param byteSize bytes wanted; 0 gives a buffer without memory
    /// @param device the device's ordinal
    /// @param stream the stream on which the buffer is used first, and in whose order it is freed
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if the allocator is closed
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public static DeviceBuffer allocate(Allocator from, long byteSize, int device, long stream) {
        return of(from.memory(), from.allocate(byteSize, device, stream), byteSize, device, stream);
    }

    /// Allocates from the given allocator or pool for use on a stream: see [#allocate(Allocator, long, int, long)].
    ///
    /// @throws IllegalArgumentException also if the stream belongs to another device memory
    /// @throws IllegalStateException if the allocator or the stream is closed
    public static DeviceBuffer allocate(Allocator from, long byteSize, CudaStream stream) {
        if (from.memory() != stream.memory()) {
            throw new IllegalArgumentException(stream + " belongs to another DeviceMemory than " + from);
        }
        return allocate(from, byteSize, stream.device(), stream.handle());
    }

    /// Allocates from the current allocator at an address with the given alignment. The block takes up to
    /// `byteAlignment - 256` bytes more than `byteSize`. If all buffers need the alignment, open an
    /// allocator that aligns, such as `caching:alignment=4096`.
    ///
    /// @param byteAlignment a power of two that divides the address; values below 256 count as 256
    /// @throws IllegalArgumentException if `byteSize` is negative, or `byteAlignment` is not a power of two
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public static DeviceBuffer allocateAligned(
            DeviceMemory memory, long byteSize, long byteAlignment, int device, long stream) {
        if (byteAlignment < 1 || Long.bitCount(byteAlignment) != 1) {
            throw new IllegalArgumentException("byteAlignment is not a power of two: " + byteAlignment);
        }
        long spare = Math.max(0, byteAlignment - ALIGNMENT);
        if (byteSize <= 0 || spare == 0) {
            return allocate(memory, byteSize, device, stream);
        }
        if (byteSize > Long.MAX_VALUE - spare) {
            throw DeviceOutOfMemoryException.aboveLimit(byteSize, device, "more than any address space has");
        }
        try (DeviceBuffer whole = allocate(memory, byteSize + spare, device, stream)) {
            return whole.retained(-whole.address() & (byteAlignment - 1), byteSize, stream);
        }
    }

    /// Allocates at an address with the given alignment, for use on a stream: see
    /// [#allocateAligned(DeviceMemory, long, long, int, long)].
    public static DeviceBuffer allocateAligned(long byteSize, long byteAlignment, CudaStream stream) {
        return allocateAligned(stream.memory(), byteSize, byteAlignment, stream.device(), stream.handle());
    }

    /// Wraps a block that the caller allocated and hands over; frees it if the Java heap is full.
    static DeviceBuffer of(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        try {
            LastStreams.of(memory).opened(device, stream);
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

    /// Wraps memory that other code, such as another library, allocated and will free. The buffer is
    /// metered as an allocation of an allocator named `foreign`. Closing the buffer and its retained slices
    /// ends only the metering. The owner may then free the memory, after the work that uses it.
    ///
    /// @param address the address of the block's first byte, which must be a multiple of 256
    /// @param byteSize the block's length in bytes
    /// @param device the block's device
    /// @param stream the stream on which the memory is used first
    /// @throws IllegalArgumentException if the address is not a multiple of 256, or a live block is there
    ///     already
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached: foreign memory counts
    ///     against limits, too
    public static DeviceBuffer ofForeign(DeviceMemory memory, long address, long byteSize, int device, long stream) {
        return ofForeign(memory, address, byteSize, device, stream, (_, _) -> {});
    }

    /// Wraps memory that other code allocated, as [#ofForeign(DeviceMemory, long, long, int, long)] does,
    /// and notifies the owner when the program has closed all buffers of the memory.
    ///
    /// @param owner called once, when the buffer and all its retained slices are closed; never if
    ///     `byteSize` is 0. The owner stays reachable until that call
    /// @throws IllegalArgumentException if the address is not a multiple of 256, or a live block is there already;
    ///     the owner is not called then
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if a limit is reached; the owner is not called then
    public static DeviceBuffer ofForeign(
            DeviceMemory memory, long address, long byteSize, int device, long stream, ForeignOwner owner) {
        ForeignMemory foreign = BufferSupport.of(memory).foreign;
        return of(memory, foreign.register(address, byteSize, device, stream, owner), byteSize, device, stream);
    }

    /// Wraps memory that another library meters itself. The buffer is not metered, no limit applies, and
    /// [#retainedSlice] is unsupported. So the memory may begin at any address, and may be a part of memory
    /// that Cistern allocated or that is already wrapped.
    ///
    /// @param address the address of the first byte, at any alignment
    /// @param byteSize the memory's length in bytes
    /// @param device the device whose streams use the memory
    /// @param stream the stream on which the memory is used first
    /// @param owner called when the buffer is closed, even if it has 0 bytes. If the owner throws, the
    ///     close throws that exception and the buffer stays open; the next close calls the owner again
    /// @throws IllegalArgumentException if the address or the length is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public static DeviceBuffer ofBorrowed(
            DeviceMemory memory, long address, long byteSize, int device, long stream, ForeignOwner owner) {
        if (address < 0 || byteSize < 0) {
            throw new IllegalArgumentException(
                    "not a range of memory: " + ByteSizes.count(byteSize) + " at 0x" + Long.toHexString(address));
        }
        LastStreams.of(memory).opened(device, stream);
        return new DeviceBuffer(memory, address, byteSize, device, stream, new BorrowedMemory(owner));
    }

    /// Called when the program has closed all buffers of
    /// [foreign][#ofForeign(DeviceMemory, long, long, int, long, ForeignOwner)] or
    /// [borrowed][#ofBorrowed] memory. Work that was enqueued before may still use the memory.
    @FunctionalInterface
    public interface ForeignOwner {
        /// Takes the memory back, on the thread that closes the last of its buffers. If this method throws, the
        /// exception is logged for foreign memory; for [borrowed][#ofBorrowed] memory, the close throws it.
        ///
        /// @param address the first byte of the block
        /// @param stream a stream of the block's device: the buffer's, unless that stream has
        ///     ended or is a thread's own default stream. Work enqueued on `stream` from now on runs after
        ///     all uses of the block
        void release(long address, long stream);
    }

    /// Returns the address of the first byte; 0 for a buffer of 0 bytes. The address is valid until the buffer is
    /// closed: enqueue all work that uses it before the close.
    ///
    /// @throws IllegalStateException if the buffer or its parent is closed, or its arena was reset or
    ///     closed
    /// @throws io.cistern.errors.MemoryAsleepException if the buffer's pool is
    ///     [asleep][io.cistern.MemoryPool#sleep]; every other method that needs the memory throws it,
    ///     too
    public long address() {
        long present = address;
        if (present < 0) {
            return addressOfState();
        }
        Lifetime depends = lifetime;
        if (depends != null && depends.isOver()) {
            throw new IllegalStateException(this + " can't be used: " + depends.whatEnded());
        }
        if (memory.moduleSupport().isAnyAsleep()) {
            memory.moduleSupport().requireAwake(depends == null ? present : depends.block(present));
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

    /// Returns whether the buffer or its parent is closed, or its arena was reset or closed.
    public boolean isClosed() {
        if (address == CLOSED) {
            return true;
        }
        Lifetime depends = lifetime;
        return depends != null && depends.isOver();
    }

    /// Returns the size up to which [#resize] keeps the block: the bytes from the buffer's
    /// beginning to the end of its block. Returns [#byteSize] if other buffers hold the block, too, or if
    /// the buffer does not own its memory.
    public long capacityBytes() {
        long start = address();
        return withoutView() instanceof SharedBlock block && block.hasOneHolder()
                ? block.capacityBytes(start)
                : byteSize;
    }

    private @Nullable Lifetime withoutView() {
        return lifetime instanceof ViewedBlock viewed ? viewed.within() : lifetime;
    }

    /// Called before the buffer moves to another stream. If others hold the block too, the last to close frees it
    /// in the order of its own stream alone, so the uses on both streams are recorded.
    ///
    /// @param last a stream whose later work runs after the work of this buffer's stream
    private void recordMove(long last, long newStream) {
        if (withoutView() instanceof SharedBlock block && !block.hasOneHolder()) {
            recordUse(last);
            recordUse(newStream);
        }
    }

    /// Returns a part that shares the block with this buffer, and is freed on `newStream`.
    ///
    /// @throws UnsupportedOperationException if it does not own its memory
    private DeviceBuffer retained(long offset, long size, long newStream) {
        long start = beginChange();
        try {
            SharedBlock block = shared(start);
            long begin = block.begin(start) + offset;
            DeviceBuffer part = new DeviceBuffer(memory, size == 0 ? 0 : begin, size, device, newStream, block);
            if (size == 0 && offset == 0) {
                block.emptied(begin);
            }
            block.retain(); // last: a part whose creation failed would never be closed
            return part;
        } finally {
            address = start;
        }
    }

    /// Makes the block one that several buffers may hold.
    private SharedBlock shared(long start) {
        Lifetime whole = lifetime;
        Lifetime depends = withoutView();
        if (depends instanceof SharedBlock already) {
            return already;
        }
        if (depends != null && !(depends instanceof WatchedBlock)) {
            throw notOwner();
        }
        SharedBlock block = new SharedBlock(start, byteSize);
        if (depends instanceof WatchedBlock watched) {
            watched.watch().end();
        }
        if (whole instanceof ViewedBlock viewed) {
            viewed.within(block);
        } else {
            lifetime = block;
        }
        return block;
    }

    /// Returns the host's view of a buffer that is not a slice. The view ends with the buffer.
    private MemorySegment viewed() {
        if (lifetime instanceof ParentBuffer || lifetime instanceof ArenaGeneration) {
            throw notOwner();
        }
        long start = beginChange();
        try {
            if (lifetime instanceof ViewedBlock already) {
                return already.view();
            }
            ViewedBlock viewed = new ViewedBlock(start, byteSize, lifetime);
            lifetime = viewed;
            return viewed.view();
        } finally {
            address = start;
        }
    }

    /// Returns the buffer that this one is a slice of, or null.
    private @Nullable DeviceBuffer parent() {
        return lifetime instanceof ParentBuffer slice ? slice.parent() : null;
    }

    /// Throws if the memory is another buffer's, an arena's, or borrowed.
    private void requireOwner() {
        Lifetime depends = lifetime;
        if (depends instanceof ParentBuffer || depends instanceof ArenaGeneration || isBorrowed()) {
            throw notOwner();
        }
    }

    private UnsupportedOperationException notOwner() {
        return new UnsupportedOperationException(this + " does not own its memory: use the buffer that does");
    }

    /// Marks the buffer as busy. Other threads' closes and changes wait until the address is written again.
    private long beginChange() {
        while (true) {
            long present = address();
            if (ADDRESS.compareAndSet(this, present, BUSY)) {
                return present;
            }
        }
    }

    /// Records that the buffer is also used on another stream, by work enqueued there before the buffer is
    /// closed: see [DeviceMemory#recordUse]. For a slice, the use counts for the whole block.
    ///
    /// @param stream a stream of the buffer's device
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread
    public void recordUse(long stream) {
        long block = block();
        if (!isBorrowed()) {
            memory.recordUse(block, stream);
        }
        usedOnAnotherStream();
    }

    /// Records a use on another stream: see [#recordUse(long)].
    public void recordUse(CudaStream stream) {
        recordUse(stream.handle());
    }

    /// Records uses that are over when an event of any device has passed.
    ///
    /// @param block the block that the buffer lies in
    void recordUseUntil(long block, long event) {
        if (isBorrowed()) {
            LastStreams.of(memory).await(device, stream, event);
        } else {
            memory.moduleSupport().recordUseUntil(block, event);
        }
        usedOnAnotherStream();
    }

    boolean isBorrowed() {
        Lifetime depends = lifetime;
        return depends != null && depends.isBorrowed();
    }

    void usedOnAnotherStream() {
        Lifetime depends = lifetime;
        if (depends != null) {
            depends.usedOnAnotherStream();
        }
    }

    /// Returns the address for work on a stream, and records the use if the stream is not the buffer's own.
    long addressOn(long workStream) {
        long present = address();
        if (workStream != stream && present != 0) {
            recordUse(workStream);
        }
        return present;
    }

    /// Frees the memory in the order of the buffer's stream. If that stream has ended, the memory is
    /// reused only after all work enqueued so far on the device. A view or an arena's buffer only
    /// becomes unusable. A block that several buffers hold is freed when the last of them is closed.
    /// Foreign or borrowed memory goes back to its owner instead. Closing twice does nothing.
    ///
    /// @throws UnusableStreamException for the per-thread default stream on a virtual thread; the buffer is
    ///     still open then. Also for a stream in an unannounced capture while another capture is announced;
    ///     then the buffer is closed, and its memory is freed later
    /// @throws IllegalStateException if native code is using the [host view][#hostView]; the
    ///     buffer is still open then
    /// @throws io.cistern.errors.UnknownAddressException if the program already freed the block by its address; the
    ///     buffer is closed then
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
            if (isFreeRefused()) {
                address = taken;
            }
            throw refused;
        } catch (RuntimeException | Error failure) {
            reopenIfBorrowed(taken);
            throw failure;
        }
    }

    /// Returns whether the calling thread can't free in the order of the buffer's stream. Any other
    /// [unusable][UnusableStreamException] stream is in a capture: then the block is freed later.
    boolean isFreeRefused() {
        return stream == Streams.PER_THREAD_DEFAULT && Thread.currentThread().isVirtual();
    }

    /// Closes the buffer, and frees its memory after an event of the program: see [DeviceMemory#freeAfter].
    /// Closing twice does nothing.
    ///
    /// @param event a `CUevent`, recorded after the last use
    /// @throws CudaException if the driver refuses the event; the buffer is still open then
    /// @throws io.cistern.errors.UnknownAddressException if the program already freed the block by its address; the
    ///     buffer is closed then
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
        } catch (RuntimeException | Error failure) {
            reopenIfBorrowed(taken);
            throw failure;
        }
    }

    /// Closes the buffer, and frees its memory after an event: see [#closeAfter(long)].
    public void closeAfter(CudaEvent event) {
        closeAfter(event.handle());
    }

    private void reopenIfBorrowed(long taken) {
        Lifetime depends = lifetime;
        boolean viewed = depends instanceof ViewedBlock view && !view.hasEnded();
        if (viewed || (depends instanceof BorrowedMemory borrowed && !borrowed.hasEnded())) {
            address = taken;
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

    /// Returns the address of the block that the buffer lies in.
    long block() {
        long present = address();
        Lifetime depends = lifetime;
        return depends == null ? present : depends.block(present);
    }

    /// Passes the address to `code`, and keeps the buffer reachable until `code` returns.
    public void withAddress(LongConsumer code) {
        try {
            code.accept(address());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /// Returns the length in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Returns the ordinal of the memory's device.
    public int device() {
        return device;
    }

    /// Returns the stream that the buffer was made for and in whose order it is freed.
    public long stream() {
        return stream;
    }

    /// Returns the device memory that the buffer belongs to.
    public DeviceMemory memory() {
        return memory;
    }

    /// Returns the allocator that made the memory; for a slice, the allocator of the whole block.
    ///
    /// @throws io.cistern.errors.UnknownAddressException if Cistern has no live block at the buffer's
    ///     address: the buffer has 0 bytes, wraps [borrowed][#ofBorrowed] memory from elsewhere, or the
    ///     program already freed the block by its address
    public Allocator allocator() {
        return memory.ownerOf(block());
    }

    /// Allocates a buffer of the same size, device and stream from the current allocator, and copies this
    /// buffer to it in stream order.
    ///
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached
    public DeviceBuffer copy() {
        return copiedTo(allocate(memory, byteSize, device, stream));
    }

    private DeviceBuffer copiedTo(DeviceBuffer target) {
        try {
            target.slice(0, byteSize).copyFrom(this, stream);
            return target;
        } catch (Throwable failure) {
            target.close();
            throw failure;
        }
    }

    /// Returns a buffer of another size with the same contents, and closes this buffer. Up to
    /// [#capacityBytes], the new buffer keeps the block. For more bytes, this buffer's allocator allocates
    /// another block (the current allocator does, if this buffer has no memory), and the contents are
    /// copied there in stream order. The added bytes are undefined.
    ///
    /// @param newByteSize bytes wanted; 0 is allowed, and keeps the block, too
    /// @throws IllegalArgumentException if `newByteSize` is negative
    /// @throws IllegalStateException if the buffer is closed, or another block is needed and the allocator is
    ///     closed
    /// @throws UnsupportedOperationException if the buffer is a view, an arena's or borrowed, or if it is
    ///     foreign and would grow beyond its block
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached; this
    ///     buffer is still open then
    public DeviceBuffer resize(long newByteSize) {
        if (newByteSize < 0) {
            throw new IllegalArgumentException("newByteSize is negative: " + newByteSize);
        }
        requireOwner();
        return replacedBy(newByteSize <= capacityBytes() ? retained(0, newByteSize, stream) : another(newByteSize));
    }

    /// Returns a buffer of the same size and contents that can grow to `capacityBytes` within its block,
    /// and closes this buffer. If the present block is too small, the contents move to another block as in
    /// [#resize].
    ///
    /// ```java
    /// DeviceBuffer rows = DeviceBuffer.allocate(0, stream).reserve(1 << 20);
    /// for (…) { rows = rows.resize(rows.byteSize() + batch.byteSize()); … }   // no copies up to 1 MiB
    /// rows = rows.shrinkToFit();
    /// ```
    ///
    /// @param capacityBytes bytes that the block should have room for; if it has at least that much
    ///     already, the new buffer keeps the block
    /// @throws IllegalArgumentException if `capacityBytes` is negative
    /// @throws IllegalStateException if the buffer is closed, or another block is needed and the allocator is
    ///     closed
    /// @throws UnsupportedOperationException as for [#resize]
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached; this
    ///     buffer is still open then
    public DeviceBuffer reserve(long capacityBytes) {
        if (capacityBytes < 0) {
            throw new IllegalArgumentException("capacityBytes is negative: " + capacityBytes);
        }
        requireOwner();
        if (capacityBytes <= capacityBytes()) {
            return replacedBy(retained(0, byteSize, stream));
        }
        try (DeviceBuffer whole = another(capacityBytes)) {
            return replacedBy(whole.retained(0, byteSize, stream));
        }
    }

    /// Returns a buffer of the same size and contents in a block of just that size, and closes this buffer.
    /// If the present block is larger, the contents move to another block as in [#resize].
    ///
    /// @throws IllegalStateException if the buffer is closed, or another block is needed and the allocator is
    ///     closed
    /// @throws UnsupportedOperationException as for [#resize]
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if memory runs out or a limit is reached; this
    ///     buffer is still open then
    public DeviceBuffer shrinkToFit() {
        requireOwner();
        return replacedBy(capacityBytes() == byteSize ? retained(0, byteSize, stream) : another(byteSize));
    }

    /// Returns a buffer of at least this size with the same contents and a block of its own.
    private DeviceBuffer another(long newByteSize) {
        return block() == 0
                ? allocate(memory, newByteSize, device, stream)
                : copiedTo(allocate(allocator(), newByteSize, device, stream));
    }

    private DeviceBuffer replacedBy(DeviceBuffer next) {
        try {
            close();
            return next;
        } catch (Throwable failure) {
            next.close();
            throw failure;
        }
    }

    /// Returns a buffer of the same memory that is used and freed on another stream, and closes this
    /// buffer. Work enqueued on the new stream from now on runs after all work enqueued so far on this
    /// buffer's stream. If this buffer's stream has [ended][DeviceMemory#streamClosing], that work runs
    /// after all work enqueued so far on the device.
    ///
    /// @param newStream a stream of the buffer's device
    /// @throws IllegalStateException if the buffer is closed; or if the new stream is being captured and
    ///     this buffer's stream is not
    /// @throws UnsupportedOperationException if the buffer is a view, an arena's, or borrowed
    /// @throws io.cistern.cuda.CudaException if the driver refuses to order the streams; the buffer is still
    ///     open then
    public DeviceBuffer moveToStream(long newStream) {
        requireOwner();
        address();
        CaptureRules.requireOrder(memory, device, stream, device, newStream);
        LastStreams streams = LastStreams.of(memory);
        long last = streams.streamFor(device, stream);
        recordMove(last, newStream);
        DeviceCopies.order(memory.driver(), device, last, device, newStream);
        streams.opened(device, newStream);
        return replacedBy(retained(0, byteSize, newStream));
    }

    /// Returns a buffer of the same memory on another stream: see [#moveToStream(long)].
    public DeviceBuffer moveToStream(CudaStream newStream) {
        return moveToStream(newStream.handle());
    }

    /// Returns a part of the buffer as a view. The view needs no close. It becomes unusable when its parent
    /// is closed, and keeps the parent reachable.
    ///
    /// @param offset bytes from the buffer's beginning, from 0
    /// @param size bytes of the part; 0 gives a buffer without memory
    /// @throws IndexOutOfBoundsException if the part is not inside the buffer
    /// @throws IllegalStateException if the buffer is closed, unless `size` is 0
    public DeviceBuffer slice(long offset, long size) {
        Objects.checkFromIndexSize(offset, size, byteSize);
        long start = size == 0 ? 0 : address() + offset;
        return new DeviceBuffer(memory, start, size, device, stream, new ParentBuffer(this));
    }

    /// Returns a part of the buffer that keeps the memory alive: the block is freed when the buffer and all its
    /// retained slices are closed, in any order.
    ///
    /// @param offset bytes from the buffer's beginning, from 0
    /// @param size bytes of the part; 0 gives a buffer without memory
    /// @throws IndexOutOfBoundsException if the part is not inside the buffer
    /// @throws UnsupportedOperationException if the buffer does not own its memory: it is a view, an arena's,
    ///     or borrowed
    public DeviceBuffer retainedSlice(long offset, long size) {
        Objects.checkFromIndexSize(offset, size, byteSize);
        return retained(offset, size, stream);
    }

    /// Returns the buffer as elements of one type.
    ///
    /// @param layout the type of an element: a number, or a vector or structure of them
    /// @throws IllegalArgumentException if the layout has 0 bytes, or the buffer's length is not a multiple
    ///     of the layout's
    public DeviceElements elements(MemoryLayout layout) {
        return new DeviceElements(this, layout);
    }

    /// Returns the buffer, or a part of it, as rows at a fixed pitch.
    ///
    /// @param offset byte at which the first row begins
    /// @param pitch bytes from the beginning of a row to the beginning of the next
    /// @param rowBytes bytes of a row
    /// @param rows number of rows
    /// @throws IndexOutOfBoundsException if the rows are not inside the buffer
    /// @throws IllegalArgumentException if rows overlap, or `rowBytes` or `rows` is negative
    public DeviceRows rows(long offset, long pitch, long rowBytes, long rows) {
        return new DeviceRows(this, offset, pitch, rowBytes, rows);
    }

    /// Returns a view through which the host reads and writes the buffer in place. The buffer must be
    /// managed memory, or come from a pool on the host, such as `async:location=host`. The view has the
    /// buffer's bounds. Once the buffer is closed (for a slice, its parent), an access throws
    /// [IllegalStateException]. Nothing orders the host's accesses: first wait for the work that uses the
    /// buffer. Repeated calls return equal views.
    ///
    /// @throws UnsupportedOperationException if the host can't access the memory, or the buffer is an
    ///     arena's
    public MemorySegment hostView() {
        if (byteSize == 0) {
            address();
            return MemorySegment.NULL;
        }
        DeviceBuffer whole = parent();
        if (whole != null) {
            return whole.hostView().asSlice(address() - whole.address(), byteSize);
        }
        if (!ManagedMemory.isOnHost(this)) {
            throw new UnsupportedOperationException(this + " is not memory that the host can reach: allocate it from"
                    + " 'managed', 'async:location=managed' or 'async:location=host', or copy it");
        }
        return viewed();
    }

    /// Copies host memory to the beginning of the buffer, on its stream, and waits for the copy.
    ///
    /// @param source native memory, or an array wrapped by [MemorySegment#ofArray(float[])]
    /// @throws IndexOutOfBoundsException if the source is longer than the buffer
    /// @throws IllegalStateException if the buffer, or the arena of `source`, is closed; or if the buffer's
    ///     stream is being captured
    /// @throws WrongThreadException if `source` is in another thread's confined arena
    public void copyFrom(MemorySegment source) {
        copyFrom(source, stream, CopyMode.BLOCKING);
    }

    /// Copies the remaining elements of a JDK buffer, as [#copyFrom(MemorySegment)] copies a segment. The
    /// position of the JDK buffer does not change.
    public void copyFrom(Buffer source) {
        copyFrom(MemorySegment.ofBuffer(source));
    }

    /// Copies host memory to the beginning of the buffer in stream order.
    ///
    /// @param source host memory; [CopyMode] says how long it must not change
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the source is longer than the buffer
    /// @throws IllegalStateException if the buffer, or the arena of `source`, is closed; or if the stream
    ///     is being captured and either the copy is blocking or `source` is an array
    /// @throws WrongThreadException if `source` is in another thread's confined arena
    public void copyFrom(MemorySegment source, long stream, CopyMode mode) {
        HostCopies.toDevice(this, source, stream, mode);
    }

    /// Copies host memory in stream order: see
    /// [#copyFrom(MemorySegment, long, CopyMode)].
    public void copyFrom(MemorySegment source, CudaStream stream, CopyMode mode) {
        copyFrom(source, stream.handle(), mode);
    }

    /// Copies pinned memory to the beginning of the buffer in stream order. The pinned buffer may be
    /// closed right after this call: its memory is reused only after the copy.
    ///
    /// @param stream a stream of the buffer's device
    ///
    /// @throws IndexOutOfBoundsException if the source is longer than the buffer
    /// @throws IllegalStateException if either buffer is closed; or if the copy is blocking and the stream
    ///     is being captured
    public void copyFrom(PinnedBuffer source, long stream, CopyMode mode) {
        CaptureRules.requireNoWait(this, stream, mode);
        source.recordUse(device, stream);
        HostCopies.toDevice(this, source.segment(), stream, mode);
    }

    /// Copies pinned memory in stream order: see
    /// [#copyFrom(PinnedBuffer, long, CopyMode)].
    public void copyFrom(PinnedBuffer source, CudaStream stream, CopyMode mode) {
        copyFrom(source, stream.handle(), mode);
    }

    /// Copies the buffer to host memory, on its stream, and waits for the copy.
    ///
    /// @param target native memory, or an array wrapped by [MemorySegment#ofArray(float[])]
    /// @throws IndexOutOfBoundsException if the target is shorter than the buffer
    /// @throws IllegalArgumentException if the target is read-only
    /// @throws IllegalStateException if the buffer, or the arena of `target`, is closed; or if the buffer's
    ///     stream is being captured
    /// @throws WrongThreadException if `target` is in another thread's confined arena
    public void copyTo(MemorySegment target) {
        copyTo(target, stream, CopyMode.BLOCKING);
    }

    /// Copies this buffer to the remaining space of a JDK buffer, as [#copyTo(MemorySegment)] copies to a
    /// segment. The position of the JDK buffer does not change.
    public void copyTo(Buffer target) {
        copyTo(MemorySegment.ofBuffer(target));
    }

    /// Copies the buffer to host memory in stream order.
    ///
    /// @param target host memory; [CopyMode] says when it may be read
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the target is shorter than the buffer
    /// @throws IllegalArgumentException if the target is read-only; or if the copy is non-blocking and the
    ///     target is an array, which the garbage collector may move
    /// @throws IllegalStateException if the buffer, or the arena of `target`, is closed; or if the stream
    ///     is being captured and the copy is blocking
    /// @throws WrongThreadException if `target` is in another thread's confined arena
    public void copyTo(MemorySegment target, long stream, CopyMode mode) {
        HostCopies.toHost(this, target, stream, mode);
    }

    /// Copies to host memory in stream order: see
    /// [#copyTo(MemorySegment, long, CopyMode)].
    public void copyTo(MemorySegment target, CudaStream stream, CopyMode mode) {
        copyTo(target, stream.handle(), mode);
    }

    /// Copies the buffer to pinned memory in stream order.
    ///
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the target is shorter than the buffer
    /// @throws IllegalStateException if either buffer is closed; or if the copy is blocking and the stream
    ///     is being captured
    public void copyTo(PinnedBuffer target, long stream, CopyMode mode) {
        CaptureRules.requireNoWait(this, stream, mode);
        target.recordUse(device, stream);
        HostCopies.toHost(this, target.segment(), stream, mode);
    }

    /// Copies to pinned memory in stream order: see
    /// [#copyTo(PinnedBuffer, long, CopyMode)].
    public void copyTo(PinnedBuffer target, CudaStream stream, CopyMode mode) {
        copyTo(target, stream.handle(), mode);
    }

    /// Enqueues a copy of another buffer to the beginning of this one.
    ///
    /// - On one GPU, the copy runs on this buffer's stream, after all work enqueued so far on the source's
    ///   stream. Later work on the source's stream does not wait for the copy.
    /// - Between two GPUs, the copy runs on the source's stream, after all work enqueued so far on either
    ///     stream. Later work on this buffer's stream waits for the copy; if the driver refuses that order,
    ///     the host waits.
    ///
    /// If a stream has [ended][DeviceMemory#streamClosing], its place is taken by a stream whose work
    /// runs after all work enqueued so far on the device.
    ///
    /// @throws IndexOutOfBoundsException if the source is longer than this buffer
    /// @throws IllegalArgumentException if the buffers overlap
    /// @throws IllegalStateException if either buffer is closed; or if the stream that runs the copy is
    ///     being captured and the other buffer's stream is not
    public void copyFrom(DeviceBuffer source) {
        DeviceCopies.inOrder(this, source);
    }

    /// Copies another buffer to the beginning of this one in stream order. The program must order the
    /// copy with work on other streams that uses either buffer.
    ///
    /// @param stream a stream of the source's device
    /// @throws IndexOutOfBoundsException if the source is longer than this buffer
    /// @throws IllegalArgumentException if the buffers overlap
    /// @throws IllegalStateException if either buffer is closed
    public void copyFrom(DeviceBuffer source, long stream) {
        DeviceCopies.on(this, source, stream);
    }

    /// Copies another buffer in stream order: see [#copyFrom(DeviceBuffer, long)].
    public void copyFrom(DeviceBuffer source, CudaStream stream) {
        copyFrom(source, stream.handle());
    }

    /// Sets every byte to a value, on the buffer's stream.
    public void fill(byte value) {
        fill(value, stream);
    }

    /// Sets every byte to a value, in stream order.
    ///
    /// @param stream a stream of the buffer's device
    public void fill(byte value, long stream) {
        memory.driver().copies().fillBytes(device, addressOn(stream), value, byteSize, stream);
    }

    /// Sets every byte in stream order: see [#fill(byte, long)].
    public void fill(byte value, CudaStream stream) {
        fill(value, stream.handle());
    }

    /// Sets every 16-bit element to a value, such as a half-precision number ([Float#floatToFloat16]), on
    /// the buffer's stream.
    ///
    /// @param value the 16 bits of an element
    /// @throws IllegalArgumentException if the address or the length is not a multiple of 2
    public void fillShorts(short value) {
        fillShorts(value, stream);
    }

    /// Sets every 16-bit value in stream order: see [#fillShorts(short)].
    ///
    /// @param stream a stream of the buffer's device
    public void fillShorts(short value, long stream) {
        requireWhole(Short.BYTES);
        memory.driver().copies().fillShorts(device, addressOn(stream), value, byteSize / Short.BYTES, stream);
    }

    /// Sets every 16-bit value in stream order: see [#fillShorts(short)].
    public void fillShorts(short value, CudaStream stream) {
        fillShorts(value, stream.handle());
    }

    /// Sets every 32-bit word to a value, on the buffer's stream. For other types see [DeviceElements].
    ///
    /// @param value the 32 bits of a word
    /// @throws IllegalArgumentException if the address or the length is not a multiple of 4
    public void fillWords(int value) {
        fillWords(value, stream);
    }

    /// Sets every 32-bit word in stream order: see [#fillWords(int)].
    ///
    /// @param stream a stream of the buffer's device
    public void fillWords(int value, long stream) {
        requireWhole(Integer.BYTES);
        memory.driver().copies().fillWords(device, addressOn(stream), value, byteSize / Integer.BYTES, stream);
    }

    /// Sets every 32-bit word in stream order: see [#fillWords(int)].
    public void fillWords(int value, CudaStream stream) {
        fillWords(value, stream.handle());
    }

    private void requireWhole(int unitBytes) {
        long start = address();
        if (start % unitBytes != 0 || byteSize % unitBytes != 0) {
            throw new IllegalArgumentException(this + " at 0x" + Long.toHexString(start)
                    + " must begin and end at multiples of " + ByteSizes.count(unitBytes));
        }
    }

    /// Returns size, device and stream.
    @Override
    public String toString() {
        return "DeviceBuffer[" + ByteSizes.count(byteSize) + ", device " + device + ", stream 0x"
                + Long.toHexString(stream) + "]";
    }
}
