package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;

/// Goes through all rows of a trace, pass after pass.
interface Walk extends AutoCloseable {
    /// A wait of the trace makes two driver calls, which are not the allocator's.
    int CALLS_A_WAIT = 2;

    void synchronize();

    void walk();

    /// Frees the blocks that are live after the last row.
    void freeLeftovers();

    /// Returns the allocations that failed in the last walk.
    long failures();

    /// Returns the streams' waits in the last walk.
    long waits();

    @Override
    void close();

    /// Walks through the trace once, waits for the devices, and then frees the blocks that are still live.
    default Replay.Pass pass(DeviceMemory memory) {
        synchronize();
        long callsBefore = memory.driver().calls().ofAllocators();
        long clockBefore = virtualNanos(memory);
        long start = System.nanoTime();
        walk();
        long hostNanos = System.nanoTime() - start;
        long driverCalls = memory.driver().calls().ofAllocators() - callsBefore - CALLS_A_WAIT * waits();
        long driverNanos = virtualNanos(memory) - clockBefore;
        synchronize();
        long wallNanos = System.nanoTime() - start;
        freeLeftovers();
        return new Replay.Pass(hostNanos, wallNanos, driverCalls, driverNanos, failures());
    }

    /// Returns the simulated GPU's clock, which advances during driver calls; 0 on a real one.
    private static long virtualNanos(DeviceMemory memory) {
        return memory.driver() instanceof SimulatedGpu gpu ? gpu.virtualNanos() : 0;
    }
}
