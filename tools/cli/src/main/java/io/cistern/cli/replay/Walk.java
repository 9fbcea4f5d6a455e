package io.cistern.cli.replay;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;

/// A way through all rows of a trace, pass after pass.
interface Walk extends AutoCloseable {
    /// The trace's own driver calls are not the allocator's.
    int CALLS_A_WAIT = 2;

    /// Waits for the devices.
    void synchronize();

    /// Plays each row once.
    void walk();

    /// Frees what is live after the last row.
    void freeLeftovers();

    /// Allocations that failed in the last walk.
    long failures();

    /// Waits of streams in the last walk.
    long waits();

    @Override
    void close();

    /// Goes through the trace once, waits for the devices, and then frees what is still live.
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

    /// The simulated GPU's clock, which runs while the driver is called; 0 on a real one.
    private static long virtualNanos(DeviceMemory memory) {
        return memory.driver() instanceof SimulatedGpu gpu ? gpu.virtualNanos() : 0;
    }
}
