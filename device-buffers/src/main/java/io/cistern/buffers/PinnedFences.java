package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.internal.order.EventOrder;

/// The marks behind the last uses of [pinned memory][PinnedMemory]. Where the driver gives none, all work of the
/// device
/// is waited for; where it refuses that too, the block keeps a fence without an event, and both are tried again
/// later.
///
/// Guarded by the lock of the pinned memory.
final class PinnedFences {
    private final CudaDriver driver;
    private final EventOrder order;

    PinnedFences(CudaDriver driver) {
        this.driver = driver;
        this.order = new EventOrder(driver, 64);
    }

    /// Has a block wait for all that a stream was given; for all work of the device, if the stream ended unannounced.
    void add(PinnedBlock block, int device, long stream) {
        PinnedBlock.Fence fence = fence(device, stream);
        if (fence.event() != PinnedBlock.Fence.NO_EVENT || !waitForDevice(device)) {
            block.fences.add(fence);
        }
    }

    /// Has a block wait for all work of a device.
    void addBehindAll(PinnedBlock block, int device) {
        block.fences.add(fenceBehindAll(device));
    }

    private PinnedBlock.Fence fence(int device, long stream) {
        try {
            return new PinnedBlock.Fence(device, order.record(device, stream));
        } catch (CudaException endedUnannounced) {
            return fenceBehindAll(device);
        }
    }

    private PinnedBlock.Fence fenceBehindAll(int device) {
        try {
            return new PinnedBlock.Fence(device, order.recordAll(device));
        } catch (CudaException refused) {
            return new PinnedBlock.Fence(device, PinnedBlock.Fence.NO_EVENT);
        }
    }

    /// Waits on the host for all work of a device.
    ///
    /// @return false if the driver refuses to
    private boolean waitForDevice(int device) {
        try {
            driver.devices().synchronize(device);
            return true;
        } catch (CudaException refused) {
            return refused.result().endsContext(); // then nothing runs any more
        }
    }

    /// Releases those fences of a block that have passed.
    ///
    /// @return whether none is left
    boolean passed(PinnedBlock block) {
        block.fences.replaceAll(this::withEvent);
        block.fences.removeIf(this::releaseIfPassed);
        return block.fences.isEmpty();
    }

    private PinnedBlock.Fence withEvent(PinnedBlock.Fence fence) {
        return fence.event() == PinnedBlock.Fence.NO_EVENT ? fenceBehindAll(fence.device()) : fence;
    }

    private boolean releaseIfPassed(PinnedBlock.Fence fence) {
        if (fence.event() == PinnedBlock.Fence.NO_EVENT) {
            return waitForDevice(fence.device());
        }
        try {
            if (!order.passed(fence.device(), fence.event())) {
                return false;
            }
            order.release(fence.device(), fence.event());
            return true;
        } catch (CudaException dead) {
            return dead.result().endsContext(); // then nothing runs any more
        }
    }

    /// Waits on the host for a block's fences, as far as the driver lets it: whether they have passed is asked again
    /// before the block is unpinned.
    void await(PinnedBlock block) {
        for (PinnedBlock.Fence fence : block.fences) {
            try {
                if (fence.event() == PinnedBlock.Fence.NO_EVENT) {
                    driver.devices().synchronize(fence.device());
                } else {
                    order.synchronize(fence.device(), fence.event());
                }
            } catch (CudaException refused) {
                // Told above.
            }
        }
    }

    void close() {
        order.close();
    }
}
