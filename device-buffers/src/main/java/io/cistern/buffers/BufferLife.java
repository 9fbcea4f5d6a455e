package io.cistern.buffers;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.internal.LastStreams;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.Streams;
import io.cistern.errors.UnusableStreamException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/// The part of a [DeviceBuffer] that knows whether it has memory: its states, its lifetime and its end.
///
/// ```
/// address ≥ 0 ──beginChange──▶ BUSY ──▶ address ≥ 0      the lifetime is replaced
///      └────────take─────────▶ CLOSED                    back only if the end was refused
/// ```
///
/// If several threads close a buffer, the thread whose compare-and-set succeeds frees it. This is a superclass,
/// not a field, so that a buffer is a single object.
///
/// **Threads.** Any thread may call any method at any time.
abstract sealed class BufferLife permits DeviceBuffer {
    /// No address is below 0, so the address field also holds the states. That keeps the object at 48 bytes.
    private static final long CLOSED = -1;

    /// A thread is replacing the lifetime.
    private static final long BUSY = -2;

    private static final AtomicLongFieldUpdater<BufferLife> ADDRESS =
            AtomicLongFieldUpdater.newUpdater(BufferLife.class, "address");

    final DeviceMemory memory;
    final long byteSize;
    final long stream;
    final int device;

    /// The address, or one of the states above.
    private volatile long address;

    /// Null if the buffer owns its block alone. Written only while the address is [#BUSY].
    @Nullable
    Lifetime lifetime;

    BufferLife(DeviceMemory memory, long address, long byteSize, int device, long stream, @Nullable Lifetime lifetime) {
        this.memory = memory;
        this.byteSize = byteSize;
        this.device = device;
        this.stream = stream;
        this.lifetime = lifetime;
        ADDRESS.lazySet(this, address);
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

    abstract DeviceBuffer self();

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

    /// Returns the size up to which [DeviceBuffer#resize] keeps the block: the bytes from the buffer's
    /// beginning to the end of its block. Returns [#byteSize] if other buffers hold the block, too, or if
    /// the buffer does not own its memory.
    ///
    /// @throws IllegalStateException if the buffer is closed
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
    final void recordMove(long last, long newStream) {
        if (withoutView() instanceof SharedBlock block && !block.hasOneHolder()) {
            recordUse(last);
            recordUse(newStream);
        }
    }

    /// Returns a part that shares the block with this buffer, and is freed on `newStream`.
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws UnsupportedOperationException if it does not own its memory
    final DeviceBuffer retained(long offset, long size, long newStream) {
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
    final MemorySegment viewed() {
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
    final @Nullable DeviceBuffer parent() {
        return lifetime instanceof ParentBuffer slice ? slice.parent() : null;
    }

    /// Throws if the memory is another buffer's, an arena's, or borrowed.
    final void requireOwner() {
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
    /// @throws IllegalStateException if the buffer is closed
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
    /// @throws IllegalStateException if native code is using the [host view][DeviceBuffer#hostView]; the
    ///     buffer is still open then
    /// @throws io.cistern.errors.UnknownAddressException if the program already freed the block by its address; the
    ///     buffer is closed then
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
                depends.close(self(), taken);
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
    final boolean isFreeRefused() {
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
                depends.closeAfter(self(), taken, event);
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
    ///
    /// @throws IllegalStateException if the buffer is closed
    long block() {
        long present = address();
        Lifetime depends = lifetime;
        return depends == null ? present : depends.block(present);
    }
}
