package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.spi.StreamOrder;

/// The fences of batches of one device, and what stands in for them where the driver refuses, or the Java heap is full.
final class BatchFences {
    /// In place of a stream: those that have ended.
    static final long ENDED = -1;

    /// In place of a fence: there is none now, ask again later.
    private static final long REFUSED = Long.MIN_VALUE;

    private final int device;
    private final StreamOrder order;
    private final Runnable waitForDevice;

    /// @param waitForDevice waits on the host for all work of the device: for streams that can't be recorded on
    BatchFences(int device, StreamOrder order, Runnable waitForDevice) {
        this.device = device;
        this.order = order;
        this.waitForDevice = waitForDevice;
    }

    /// Closes an open batch, unless the driver gives no fence now.
    void seal(FencedBatch batch, long stream) {
        if (batch.open) {
            long fence = fence(stream);
            if (fence != REFUSED) {
                batch.seal(fence);
            }
        }
    }

    /// Marks the present end of a stream; that of all for one that ended unannounced, or is [#ENDED].
    ///
    /// @return [FencedBatch#NONE] where the driver can't do that: then all streams were waited for
    private long fence(long stream) {
        try {
            return stream == ENDED ? order.recordAll(device) : order.record(device, stream);
        } catch (CudaException refusal) {
            return stream == ENDED ? fenceOnHost() : fence(ENDED);
        } catch (OutOfMemoryError ofTheHeap) {
            return REFUSED;
        }
    }

    private long fenceOnHost() {
        try {
            waitForDevice.run();
            return FencedBatch.NONE;
        } catch (CudaException | OutOfMemoryError refusal) {
            return REFUSED;
        }
    }

    /// Whether a batch waits for nothing any more. In a dead context nothing runs any more.
    boolean passed(FencedBatch batch) {
        try {
            return batch.isFree() || (!batch.open && order.passed(device, batch.fence));
        } catch (CudaException dead) {
            return dead.result().endsContext();
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    /// Makes a stream wait for a batch.
    ///
    /// @return whether that was possible
    boolean await(long stream, FencedBatch batch) {
        try {
            if (!batch.open && !batch.isFree()) {
                order.await(device, stream, batch.fence);
            }
            return !batch.open;
        } catch (CudaException refusal) {
            return refusal.result().endsContext();
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    /// Ends its fence.
    void drop(FencedBatch batch) {
        if (batch.fence != FencedBatch.NONE) {
            try {
                order.release(device, batch.fence);
            } catch (CudaException | OutOfMemoryError lost) {
                // It went with its context, or is one event that is not used again.
            }
            batch.fence = FencedBatch.NONE;
        }
    }
}
