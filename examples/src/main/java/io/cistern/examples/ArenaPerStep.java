package io.cistern.examples;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceArena;
import io.cistern.buffers.DeviceBuffer;

/// Allocates buffers that live for one step from an arena, and resets the arena after each step.
public final class ArenaPerStep {
    private static final int DEVICE = 0;

    private ArenaPerStep() {}

    /// Prints the arena's memory, and what happens if a buffer of an earlier step is used.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                DeviceArena arena = DeviceArena.builder(memory).name("step").open(stream)) {
            DeviceBuffer kept = arena.buffer(1);
            for (int step = 0; step < 100; step++) {
                kept = arena.buffer(3 << 20);
                kept.fill((byte) step);
                arena.buffer(5 << 20).copyFrom(kept);
                arena.reset();
            }
            System.out.println("100 steps in " + (arena.reservedBytes() >> 20) + " MiB, "
                    + memory.current(0).statistics(DEVICE).allocations() + " allocations");
            try {
                kept.fill((byte) 0);
            } catch (IllegalStateException stale) {
                System.out.println(String.valueOf(stale.getMessage()).replaceAll("0x[0-9a-f]+", "…"));
            }
        }
    }
}
