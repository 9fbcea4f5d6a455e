package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.spi.StreamOrder;
import java.util.OptionalLong;

/// The fences of batches of one device, and what stands in for them where the driver refuses.
final class BatchFences {
    /// In place of a stream: those that have ended.
    static final long ENDED = -1;

    private final int device;
    private final StreamOrder order;
    private final Runnable waitForDevice;

    /// @param waitForDevice waits on the host for all work of the device: for streams that can't be recorded on
    BatchFences(int device, StreamOrder order, Runnable waitForDevice) {
        this.device = device;
        this.order = order;
        this.waitForDevice = waitForDevice;
    }

    /// Closes an open batch, unless the driver gives no fence.
    void seal(FencedBatch batch, long stream) {
        if (batch.open) {
            fence(stream).ifPresent(batch::seal);
        }
    }

    /// Marks the present end of a stream; that of all for one that ended unannounced, or is [#ENDED].
    ///
    /// @return [FencedBatch#NONE] where the driver can't do that: then all streams were waited for; empty if it
    ///     refuses now
    OptionalLong fence(long stream) {
        try {
            return OptionalLong.of(stream == ENDED ? order.recordAll(device) : order.record(device, stream));
        } catch (CudaException refusal) {
            return stream == ENDED ? fenceOnHost() : fence(ENDED);
        }
    }

    private OptionalLong fenceOnHost() {
        try {
            waitForDevice.run();
            return OptionalLong.of(FencedBatch.NONE);
        } catch (CudaException refusal) {
            return OptionalLong.empty();
        }
    }

    /// Whether a batch waits for nothing any more. In a dead context nothing runs any more.
    boolean passed(FencedBatch batch) {
        try {
            return batch.isFree() || (!batch.open && order.passed(device, batch.fence));
        } catch (CudaException dead) {
            return dead.result().endsContext();
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
        }
    }

    /// Ends its fence.
    void drop(FencedBatch batch) {
        if (batch.fence != FencedBatch.NONE) {
            try {
                order.release(device, batch.fence);
            } catch (CudaException dead) {
                // It went with its context.
            }
        }
    }
}
