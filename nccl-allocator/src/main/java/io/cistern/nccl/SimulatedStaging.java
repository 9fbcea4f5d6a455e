package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/// Holds pinned host memory and kernels for simulated communicators. It keeps all of them until the driver is
/// closed: giving memory back waits for the device, whose streams may be waiting for ranks that have not called.
///
/// **Threads.** Any; its own lock.
final class SimulatedStaging {
    private static final long MIN_BYTES = 64;

    private final CudaDriver driver;
    private final Map<Long, Deque<MemorySegment>> idle = new HashMap<>();
    private final Map<Integer, MemoryKernels> kernels = new HashMap<>();

    SimulatedStaging(CudaDriver driver) {
        this.driver = driver;
    }

    CudaDriver driver() {
        return driver;
    }

    /// Returns memory of at least that many bytes; its size is a power of two.
    synchronized MemorySegment take(int device, long byteSize) {
        long size = Long.highestOneBit(Math.max(byteSize, MIN_BYTES) * 2 - 1);
        Deque<MemorySegment> fitting = idle.computeIfAbsent(size, _ -> new ArrayDeque<>());
        return fitting.isEmpty() ? driver.memory().allocateHost(device, size) : fitting.pop();
    }

    synchronized void giveBack(MemorySegment memory) {
        idle.computeIfAbsent(memory.byteSize(), _ -> new ArrayDeque<>()).push(memory);
    }

    /// Returns the kernels of a device, which are loaded when its first communicator is created.
    synchronized MemoryKernels kernels(int device) {
        return kernels.computeIfAbsent(device, _ -> MemoryKernels.load(driver, device));
    }
}
