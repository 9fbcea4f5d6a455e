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

    /// What is on its way back to the driver.
    private static final class Returning {
        static final long NO_EVENT = 0;

        final int device;
        final MemorySegment memory;

        /// Whether a stream may use it whose end the driver did not mark.
        boolean unmarked;

        /// That a stream passes behind its last use.
        long event = NO_EVENT;

        Returning(int device, MemorySegment memory) {
            this.device = device;
            this.memory = memory;
        }
    }

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

    /// Gives memory back that nobody reads or writes any more; with a later call, if the driver refuses now.
    synchronized void giveBack(int device, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        if (!isBack(waiting)) {
            returning.add(waiting);
        }
    }

    /// Gives memory back once a stream has got past what it was given until now; where the driver marks no end, once
    /// all work of the device has been waited for.
    synchronized void giveBackAfter(int device, long stream, MemorySegment memory) {
        Returning waiting = new Returning(device, memory);
        returning.add(waiting);
        try {
            waiting.event = driver.events().create(device);
            driver.events().record(device, waiting.event, stream);
        } catch (CudaException refused) {
            waiting.unmarked = true;
        }
    }

    private void collect() {
        returning.removeIf(this::isBack);
    }

    /// Goes on with a return as far as the driver allows.
    ///
    /// @return whether it is done
    private boolean isBack(Returning waiting) {
        try {
            if (waiting.unmarked) {
                driver.devices().synchronize(waiting.device);
                waiting.unmarked = false;
            }
            if (waiting.event != Returning.NO_EVENT) {
                if (!driver.events().hasPassed(waiting.device, waiting.event)) {
                    return false;
                }
                driver.events().destroy(waiting.device, waiting.event);
                waiting.event = Returning.NO_EVENT;
            }
            driver.memory().freeHost(waiting.device, waiting.memory);
        } catch (CudaException refused) {
            if (!refused.result().endsContext()) { // else it went with its context
                return false;
            }
        }
        takenBytes -= waiting.memory.byteSize();
        return true;
    }

    /// Waits for all streams that still read, and gives everything back.
    synchronized void drain() {
        returning.forEach(this::await);
        collect();
    }

    private void await(Returning waiting) {
        try {
            if (waiting.event != Returning.NO_EVENT) {
                driver.events().synchronize(waiting.device, waiting.event);
            }
        } catch (CudaException refused) {
            // Whether it has passed is asked again.
        }
    }
}
