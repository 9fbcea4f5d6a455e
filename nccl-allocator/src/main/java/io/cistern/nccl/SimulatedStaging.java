package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
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

    /// Exchanges of failed communicators whose streams are not past them.
    private final List<SimulatedExchange> abandoned = new ArrayList<>();

    SimulatedStaging(CudaDriver driver) {
        this.driver = driver;
    }

    CudaDriver driver() {
        return driver;
    }

    /// Returns memory of at least that many bytes; its size is a power of two.
    synchronized MemorySegment take(int device, long byteSize) {
        abandoned.removeIf(SimulatedExchange::freeIfDone);
        long size = Long.highestOneBit(Math.max(byteSize, MIN_BYTES) * 2 - 1);
        Deque<MemorySegment> fitting = idle.computeIfAbsent(size, _ -> new ArrayDeque<>());
        return fitting.isEmpty() ? driver.memory().allocateHost(device, size) : fitting.pop();
    }

    synchronized void giveBack(MemorySegment memory) {
        idle.computeIfAbsent(memory.byteSize(), _ -> new ArrayDeque<>()).push(memory);
    }

    /// Takes over exchanges that no rank joins any more; they are freed once their streams are past them.
    synchronized void abandon(List<SimulatedExchange> exchanges) {
        exchanges.forEach(SimulatedExchange::abandon);
        abandoned.addAll(exchanges);
        abandoned.removeIf(SimulatedExchange::freeIfDone);
    }

    /// Returns the kernels of a device, which are loaded when its first communicator is created.
    synchronized MemoryKernels kernels(int device) {
        return kernels.computeIfAbsent(device, _ -> MemoryKernels.load(driver, device));
    }
}
