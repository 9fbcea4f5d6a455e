package io.cistern.buffers;

import io.cistern.buffers.internal.LastStreams;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.Objects;

/// Memory of another library, unknown to all allocators. This object remembers whether other streams used the
/// memory, and notifies the owner when the buffer is closed.
final class BorrowedMemory implements Lifetime {
    private final DeviceBuffer.ForeignOwner owner;
    private volatile boolean usedElsewhere;
    private volatile boolean ended;

    BorrowedMemory(DeviceBuffer.ForeignOwner owner) {
        this.owner = Objects.requireNonNull(owner, "owner");
    }

    @Override
    public boolean isBorrowed() {
        return true;
    }

    /// Returns whether the memory was given back to its owner.
    boolean hasEnded() {
        return ended;
    }

    @Override
    public void usedOnAnotherStream() {
        usedElsewhere = true;
    }

    /// The closing thread may have another per-thread default stream. The legacy default stream waits for those of
    /// all threads.
    @Override
    public void close(DeviceBuffer buffer, long address) {
        boolean ofThread = buffer.stream() == Streams.PER_THREAD_DEFAULT;
        long stream = ofThread
                ? Streams.LEGACY_DEFAULT
                : LastStreams.of(buffer.memory()).streamFor(buffer.device(), buffer.stream());
        if (usedElsewhere) {
            awaitAll(buffer, stream);
        }
        owner.release(address, stream);
        ended = true;
    }

    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        buffer.recordUseUntil(address, event);
        close(buffer, address);
    }

    /// Streams that used the memory may have ended since, and new streams may have their handles. So the fence
    /// covers all streams.
    private static void awaitAll(DeviceBuffer buffer, long stream) {
        StreamOrder order = buffer.memory().moduleSupport().streams();
        long fence = order.recordAll(buffer.device());
        try {
            order.await(buffer.device(), stream, fence);
        } finally {
            order.release(buffer.device(), fence);
        }
    }
}
