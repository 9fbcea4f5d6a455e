package io.cistern.buffers;

import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;

/// The fences behind the last uses of [pinned memory][PinnedMemory].
///
/// Guarded by the lock of the pinned memory.
final class PinnedFences {
    private final StreamOrder order;

    PinnedFences(StreamOrder order) {
        this.order = order;
    }

    /// Has a block wait for all that a stream was given; for all work of the device, if the stream ended unannounced.
    void add(PinnedBlock block, int device, long stream) {
        block.fences.add(new PinnedBlock.Fence(device, order.record(device, stream)));
    }

    /// Has a block wait for all work of a device.
    void addBehindAll(PinnedBlock block, int device) {
        block.fences.add(new PinnedBlock.Fence(device, order.recordAll(device)));
    }

    /// Releases those fences of a block that have passed.
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

    /// Waits on the host for a block's fences, as far as the driver lets it: whether they have passed is asked again
    /// before the block is unpinned.
    void await(PinnedBlock block) {
        for (PinnedBlock.Fence fence : block.fences) {
            boolean _ = DeadContext.isDone(() -> order.synchronize(fence.device(), fence.number()));
        }
    }
}
