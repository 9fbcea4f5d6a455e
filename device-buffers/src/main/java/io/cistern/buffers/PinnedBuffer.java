package io.cistern.buffers;

import io.cistern.spi.HostMemory;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/// Pinned host memory: the GPU copies from and to it at the link's full speed, beside other work, and kernels reach
/// it by its address.
///
/// ```java
/// PinnedMemory pinned = PinnedMemory.of(memory);
/// try (PinnedBuffer batch = pinned.allocate(bytes)) {
///     fill(batch.segment());
///     x.copyFrom(batch, stream, CopyMode.NON_BLOCKING);
/// }                            // used again once the stream has passed the copy
/// ```
///
/// **Streams.** Copies of this library record the streams that use the memory; who hands its address to other work
/// calls [#recordUse]. After [#close] the memory goes to nobody before those streams have passed. What a captured
/// stream uses goes to nobody before the graph and its executables are gone: each launch uses it.
///
/// **Reachability.** A buffer that is dropped without close is not used again. Its segment stays readable after
/// close, as C's pointer would, but its bytes are somebody else's then.
///
/// **Threads.** Any thread may use or close it; of several closes one counts.
public final class PinnedBuffer implements HostMemory.HostBlock {
    private static final VarHandle BLOCK = blockHandle();

    private final PinnedMemory owner;
    private final long byteSize;

    /// Null when closed.
    private volatile @Nullable PinnedBlock block;

    PinnedBuffer(PinnedMemory owner, PinnedBlock block, long byteSize) {
        this.owner = owner;
        this.byteSize = byteSize;
        BLOCK.setRelease(this, block);
    }

    /// The memory, for the host; its address is good on the device as well.
    ///
    /// @throws IllegalStateException if the buffer is closed
    @Override
    public MemorySegment segment() {
        return open().memory.asSlice(0, byteSize);
    }

    /// Its length.
    public long byteSize() {
        return byteSize;
    }

    /// Says that a stream uses the memory, by work enqueued until [#close].
    ///
    /// @throws IllegalStateException if the buffer is closed
    /// @throws io.cistern.errors.UnusableStreamException for the per-thread default stream on a virtual thread; for
    ///     a stream in a
    ///     capture that nobody announced, beside one that was
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

    /// Gives the memory back for later use, without waiting. Closing twice does nothing.
    @Override
    public void close() {
        PinnedBlock taken = (PinnedBlock) BLOCK.getAndSet(this, null);
        if (taken != null) {
            owner.free(taken);
        }
    }

    /// Its size.
    @Override
    public String toString() {
        return "PinnedBuffer[" + byteSize + " bytes]";
    }

    private static VarHandle blockHandle() {
        try {
            return MethodHandles.lookup().findVarHandle(PinnedBuffer.class, "block", PinnedBlock.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }
}
