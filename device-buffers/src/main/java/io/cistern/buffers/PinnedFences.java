package io.cistern.buffers;

import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;

/// Records and queries the fences after the last uses of [pinned memory][PinnedMemory].
///
/// Guarded by the lock of the pinned memory.
final class PinnedFences {
    private final StreamOrder order;

    PinnedFences(StreamOrder order) {
        this.order = order;
    }

    /// Makes a block wait for all work enqueued on a stream; if the stream ended unannounced, for all work of
    /// the device.
    void add(PinnedBlock block, int device, long stream) {
        block.fences.add(new PinnedBlock.Fence(device, order.record(device, stream)));
    }

    /// Makes a block wait for all work of a device.
    void addBehindAll(PinnedBlock block, int device) {
        block.fences.add(new PinnedBlock.Fence(device, order.recordAll(device)));
    }

    /// Releases the fences of a block that have passed.
    ///
    /// @return whether none is left
    boolean passed(PinnedBlock block) {
        block.fences.removeIf(this::releaseIfPassed);
        return block.fences.isEmpty();
    }

    private boolean releaseIfPassed(PinnedBlock.Fence fence) {
        boolean passed = order.passed(fence.device(), fence.number());
        if (passed) {
            order.release(fence.device(), fence.number());
        }
        return passed;
    }

    /// Waits on the host for a block's fences, as far as the driver allows. The others are queried again before the
    /// block is unpinned.
    void await(PinnedBlock block) {
        block.fences.removeIf(this::awaited);
    }

    private boolean awaited(PinnedBlock.Fence fence) {
        boolean passed = DeadContext.isDone(() -> order.synchronize(fence.device(), fence.number()));
        if (passed) {
            order.release(fence.device(), fence.number());
        }
        return passed;
    }
}
