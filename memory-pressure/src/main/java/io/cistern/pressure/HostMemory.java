package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Pinned host memory within a limit. What a stream still reads is given back once it has got past that.
///
/// **Invariant.** taken = bytes of all segments that were taken and not given back to the driver ≤ limit.
///
/// **Threads.** Any, at any time.
final class HostMemory {
    private final CudaDriver driver;
    private final StreamOrder order;
    private final long limitBytes;
    private final Deque<Returning> returning = new ArrayDeque<>();
    private long takenBytes;

    /// What is on its way back to the driver.
    private static final class Returning {
        final int device;
        final MemorySegment memory;

        /// Behind its last use.
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

    /// Takes memory, or nothing if the limit or the driver has no more.
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

    /// Whether so much could ever be taken.
    boolean canHold(long byteSize) {
        return byteSize <= limitBytes;
    }

    /// Gives memory back that nobody reads or writes any more; with a later call, if the driver refuses now.
    synchronized void giveBack(int device, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        if (!isBack(waiting)) {
            returning.add(waiting);
        }
    }

    /// Gives memory back once a stream has got past what it was given until now.
    synchronized void giveBackAfter(int device, long stream, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        returning.add(waiting);
        waiting.fence = order.record(device, stream);
    }

    private void collect() {
        returning.removeIf(this::isBack);
    }

    /// Goes on with a return as far as the driver allows.
    ///
    /// @return whether it is done
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
        // Whether a fence has passed is asked again.
        returning.forEach(each -> DeadContext.isDone(() -> order.synchronize(each.device, each.fence)));
        collect();
    }
}
