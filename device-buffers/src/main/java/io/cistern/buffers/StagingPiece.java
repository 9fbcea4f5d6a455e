package io.cistern.buffers;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import java.lang.foreign.MemorySegment;

/// Pinned memory through which bytes pass between the heap and one device, with the event that says when the device
/// is done with them.
///
/// ```
/// FREE ──a copy of it is enqueued──▶ SENT ──its event is recorded──▶ MARKED
///   └◀──────the stream was waited for────┘                              │
///   └◀──────the event has passed────────────────────────────────────────┘
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

    /// Made when it is first recorded: copies that are waited for need none. 0 before.
    private long event;

    private Use use = Use.FREE;

    StagingPiece(CudaDriver driver, int device, PinnedBlock block) {
        this.driver = driver;
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
        if (event == 0) {
            event = driver.events().create(device);
        }
        driver.events().record(device, event, stream);
        use = Use.MARKED;
    }

    /// Waits until the device is done with it.
    void awaitMark() {
        driver.events().synchronize(device, event);
        use = Use.FREE;
    }

    /// Says that the stream it was sent on was waited for.
    void passed() {
        use = Use.FREE;
    }

    /// Whether the host may write it.
    ///
    /// @throws CudaException if its context failed
    boolean isFree() {
        if (use == Use.MARKED && driver.events().hasPassed(device, event)) {
            use = Use.FREE;
        }
        return use == Use.FREE;
    }

    /// Whether a copy of it may be under way that no event marks.
    boolean isUnmarked() {
        return use == Use.SENT;
    }

    /// Destroys the event.
    ///
    /// @return false if the driver refuses: then it is there still
    boolean end() {
        if (event == 0) {
            return true;
        }
        try {
            driver.events().destroy(device, event);
        } catch (CudaException refused) {
            if (!refused.result().endsContext()) { // else it went with its context
                return false;
            }
        }
        event = 0;
        return true;
    }
}
