package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
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
    private final long limitBytes;
    private final Deque<Returning> returning = new ArrayDeque<>();
    private long takenBytes;

    private record Returning(int device, long event, MemorySegment memory) {}

    HostMemory(CudaDriver driver, long limitBytes) {
        this.driver = driver;
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

    /// Gives memory back that nobody reads or writes any more.
    synchronized void giveBack(int device, MemorySegment memory) {
        driver.memory().freeHost(device, memory);
        takenBytes -= memory.byteSize();
    }

    /// Gives memory back once a stream has got past what it was given until now.
    synchronized void giveBackAfter(int device, long stream, MemorySegment memory) {
        long event = driver.events().create(device);
        driver.events().record(device, event, stream);
        returning.add(new Returning(device, event, memory));
    }

    private void collect() {
        returning.removeIf(waiting -> {
            boolean passed = driver.events().hasPassed(waiting.device(), waiting.event());
            if (passed) {
                driver.events().destroy(waiting.device(), waiting.event());
                giveBack(waiting.device(), waiting.memory());
            }
            return passed;
        });
    }

    /// Waits for all streams that still read, and gives everything back.
    synchronized void drain() {
        returning.forEach(waiting -> driver.events().synchronize(waiting.device(), waiting.event()));
        collect();
    }
}
