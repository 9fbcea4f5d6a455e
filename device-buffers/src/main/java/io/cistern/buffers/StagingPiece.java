package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;

/// A piece of pinned memory through which bytes pass between the heap and one device, with the fence after the
/// last copy.
///
/// ```
/// FREE ──a copy of it is enqueued──▶ SENT ──its fence is recorded──▶ MARKED
///   └◀──────the stream was waited for────┘                              │
///   └◀──────the fence has passed────────────────────────────────────────┘
/// ```
///
/// **Threads.** One at a time.
final class StagingPiece {
    private enum Use {
        FREE,
        SENT,
        MARKED
    }

    final PinnedBlock block;
    final int device;
    private final CudaDriver driver;
    private final StreamOrder order;

    /// 0 before the first fence: a copy that the host waits for needs none.
    private long fence;

    private Use use = Use.FREE;

    StagingPiece(CudaDriver driver, StreamOrder order, int device, PinnedBlock block) {
        this.driver = driver;
        this.order = order;
        this.device = device;
        this.block = block;
    }

    MemorySegment memory() {
        return block.memory;
    }

    /// Copies its beginning to the device.
    void toDevice(long target, long byteSize, long stream) {
        use = Use.SENT;
        driver.copies().toDevice(device, target, block.memory, byteSize, stream);
    }

    /// Copies from the device to its beginning.
    void toHost(long source, long byteSize, long stream) {
        use = Use.SENT;
        driver.copies().toHost(device, block.memory, source, byteSize, stream);
    }

    /// Records a fence after all work enqueued so far on the stream of the last copy.
    void mark(long stream) {
        end();
        fence = order.record(device, stream);
        use = Use.MARKED;
    }

    /// Waits until the device has finished with the piece.
    void awaitMark() {
        order.synchronize(device, fence);
        use = Use.FREE;
    }

    /// Notes that the host has waited for the stream of the last copy.
    void passed() {
        use = Use.FREE;
    }

    /// Returns whether the host may write the piece.
    boolean isFree() {
        if (use == Use.MARKED && order.passed(device, fence)) {
            use = Use.FREE;
        }
        return use == Use.FREE;
    }

    /// Returns whether a copy without a fence may be under way.
    boolean isUnmarked() {
        return use == Use.SENT;
    }

    /// Releases the fence.
    void end() {
        order.release(device, fence);
        fence = 0;
    }
}
