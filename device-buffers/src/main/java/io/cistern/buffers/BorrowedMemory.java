package io.cistern.buffers;

import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;

/// Memory of another library that is known to no allocator: what is recorded of its uses is kept here, and at its
/// end its owner is told.
final class BorrowedMemory implements Lifetime {
    private final DeviceBuffer.ForeignOwner owner;
    private volatile boolean usedElsewhere;
    private volatile boolean ended;

    BorrowedMemory(DeviceBuffer.ForeignOwner owner) {
        this.owner = owner;
    }

    @Override
    public boolean isOver() {
        return false;
    }

    @Override
    public String whatEnded() {
        return "";
    }

    @Override
    public long block(long address) {
        return address;
    }

    @Override
    public boolean isBorrowed() {
        return true;
    }

    /// Whether it has gone back to its owner.
    boolean hasEnded() {
        return ended;
    }

    @Override
    public void usedOnAnotherStream() {
        usedElsewhere = true;
    }

    /// The per-thread default stream is another one on the thread that closes; the legacy one waits for all of
    /// those.
    @Override
    public void close(DeviceBuffer buffer, long address) {
        boolean ofThread = buffer.stream() == Streams.PER_THREAD_DEFAULT;
        long stream = ofThread ? Streams.LEGACY_DEFAULT : buffer.stream();
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

    /// Streams that used the memory may have ended since, and another may have the handle: so the fence is behind
    /// all.
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
