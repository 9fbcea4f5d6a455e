package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Allocates pinned host memory within a limit. If a stream still reads a segment, the segment goes back once
/// the stream has passed that.
///
/// **Invariant.** taken = bytes of all segments that were taken and not yet given back to the driver ≤ limit.
///
/// **Threads.** Any, at any time.
final class HostMemory {
    private final CudaDriver driver;
    private final StreamOrder order;
    private final long limitBytes;
    private final Deque<Returning> returning = new ArrayDeque<>();
    private long takenBytes;

    /// A segment on its way back to the driver.
    private static final class Returning {
        final int device;
        final MemorySegment memory;

        /// The fence after its last use; 0 if there is none.
        long fence;

        Returning(int device, MemorySegment memory) {
            this.device = device;
            this.memory = memory;
        }
    }

    HostMemory(CudaDriver driver, StreamOrder order, long limitBytes) {
        this.driver = driver;
        this.order = order;
        this.limitBytes = limitBytes;
    }

    /// Takes memory; returns null if the limit or the driver has no more.
    synchronized @Nullable MemorySegment take(int device, long byteSize) {
        collect();
        if (byteSize > limitBytes - takenBytes) {
            return null;
        }
        try {
            MemorySegment memory = driver.memory().allocateHost(device, byteSize);
            takenBytes += byteSize;
            return memory;
        } catch (CudaException refused) {
            return null;
        }
    }

    /// Returns whether the limit allows so many bytes at all.
    boolean canHold(long byteSize) {
        return byteSize <= limitBytes;
    }

    /// Gives back memory that nobody reads or writes any more. If the driver refuses now, a later call tries
    /// again.
    synchronized void giveBack(int device, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        if (!isBack(waiting)) {
            returning.add(waiting);
        }
    }

    /// Gives back memory once a stream has passed its present work.
    synchronized void giveBackAfter(int device, long stream, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        returning.add(waiting);
        waiting.fence = order.record(device, stream);
    }

    private void collect() {
        returning.removeIf(this::isBack);
    }

    /// Continues a return as far as the driver allows.
    ///
    /// @return whether it is complete
    private boolean isBack(Returning waiting) {
        if (!order.passed(waiting.device, waiting.fence)) {
            return false;
        }
        order.release(waiting.device, waiting.fence);
        waiting.fence = 0;
        boolean back = DeadContext.isDone(() -> driver.memory().freeHost(waiting.device, waiting.memory));
        takenBytes -= back ? waiting.memory.byteSize() : 0;
        return back;
    }

    /// Waits for all streams that still read, and gives everything back.
    synchronized void drain() {
        // If a wait fails, the fence is queried once more.
        returning.forEach(each -> DeadContext.isDone(() -> order.synchronize(each.device, each.fence)));
        collect();
    }
}
