package io.cistern.buffers;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.spi.HostMemory;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/// A buffer of pinned host memory. The GPU copies from and to it at the link's full speed while other
/// work runs, and kernels can access it by its address.
///
/// ```java
/// PinnedMemory pinned = PinnedMemory.of(memory);
/// try (PinnedBuffer batch = pinned.allocate(bytes)) {
///     fill(batch.segment());
///     x.copyFrom(batch, stream, CopyMode.NON_BLOCKING);
/// }                            // its memory is reused once the copy has completed
/// ```
///
/// **Streams.** Copies and launches of this library record the streams that use the memory. If other
/// work uses the address, the program must call [#recordUse]. After [#close], the memory is reused only
/// once the work enqueued on the recorded streams before the close has completed. If a captured stream
/// used the memory, it is not reused before the graph and its executables are destroyed, since each
/// launch uses it.
///
/// **Reachability.** If a buffer is dropped without a close, its memory is never reused. After the close,
/// nothing checks the use of its segment, as with a pointer in C: other code may own the bytes, or they may
/// be unmapped.
///
/// **Threads.** Any thread may use or close a buffer; of several concurrent closes, only one takes effect.
public final class PinnedBuffer implements HostMemory.HostBlock {
    private static final AtomicReferenceFieldUpdater<PinnedBuffer, @Nullable PinnedBlock> BLOCK =
            AtomicReferenceFieldUpdater.newUpdater(PinnedBuffer.class, PinnedBlock.class, "block");

    private final PinnedMemory owner;
    private final long byteSize;

    /// Null when closed.
    private volatile @Nullable PinnedBlock block;

    PinnedBuffer(PinnedMemory owner, PinnedBlock block, long byteSize) {
        this.owner = owner;
        this.byteSize = byteSize;
        BLOCK.lazySet(this, block);
    }

    /// Returns the memory as a segment for the host; the segment's address is valid on the device as
    /// well.
    ///
    /// @throws IllegalStateException if the buffer is closed
    @Override
    public MemorySegment segment() {
        return open().memory.asSlice(0, byteSize);
    }

    /// Returns the length in bytes.
    public long byteSize() {
        return byteSize;
    }

    /// Records that work enqueued on a stream before [#close] uses the memory.
    ///
    /// @param device the stream's device
    /// @param stream a `CUstream` of that device
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread, or
    ///     for a stream in an unannounced capture while another capture is announced
    public void recordUse(int device, long stream) {
        owner.recordUse(open(), device, stream);
    }

    private PinnedBlock open() {
        PinnedBlock present = block;
        if (present == null) {
            throw new IllegalStateException(this + " is closed");
        }
        return present;
    }

    /// Returns the memory to the cache, without waiting. Closing twice does nothing.
    @Override
    public void close() {
        PinnedBlock taken = BLOCK.getAndSet(this, null);
        if (taken != null) {
            owner.free(taken);
        }
    }

    /// Returns the size.
    @Override
    public String toString() {
        return "PinnedBuffer[" + ByteSizes.count(byteSize) + "]";
    }
}
