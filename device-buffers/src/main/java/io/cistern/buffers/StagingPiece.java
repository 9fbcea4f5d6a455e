package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;

/// Pinned memory through which bytes pass between the heap and one device, with the fence behind the last copy.
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

    /// 0 before the first: copies that are waited for need none.
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

    /// Marks the end of what was enqueued on the stream that it was sent on.
    void mark(long stream) {
        end();
        fence = order.record(device, stream);
        use = Use.MARKED;
    }

    /// Waits until the device is done with it.
    void awaitMark() {
        order.synchronize(device, fence);
        use = Use.FREE;
    }

    /// Says that the stream it was sent on was waited for.
    void passed() {
        use = Use.FREE;
    }

    /// Whether the host may write it.
    boolean isFree() {
        if (use == Use.MARKED && order.passed(device, fence)) {
            use = Use.FREE;
        }
        return use == Use.FREE;
    }

    /// Whether a copy of it may be under way that no fence marks.
    boolean isUnmarked() {
        return use == Use.SENT;
    }

    /// Ends the fence.
    void end() {
        order.release(device, fence);
        fence = 0;
    }
}
