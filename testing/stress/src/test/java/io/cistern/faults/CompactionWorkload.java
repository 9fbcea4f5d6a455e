package io.cistern.faults;

import io.cistern.Listeners.WorkPause;
import io.cistern.Registration;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/// Pages that hold little, and memory that moves for what they could hold. Allocators that can't move memory refuse.
final class CompactionWorkload {
    private static final long MIB = 1 << 20;
    private static final int BLOCKS = 24;

    private CompactionWorkload() {}

    static void onDemand(GpuProgram program) {
        fragment(program);
        program.allocator.compact(0); // which only tells what could move, since the program has not said that it rests
        compact(program, WorkPause.of(new ReentrantReadWriteLock()));
        program.freeAll(0);
        program.allocator.trim(0, 0, TrimMode.SYNCHRONIZE);
    }

    /// The device has next to nothing left, so a request takes the bytes between the blocks.
    static void forRequest(GpuProgram program) {
        fragment(program);
        long rest = program.gpu.memory().allocate(0, program.gpu.memory().freeBytes(0) - 8 * MIB);
        try (Registration _ = program.memory.listeners().onCompaction(WorkPause.ofOneThread())) {
            program.allocate(BLOCKS * MIB, 0);
        } catch (DeviceOutOfMemoryException refused) {
            if (refused.getCause() instanceof Error full) {
                throw full;
            }
        } finally {
            program.gpu.memory().free(0, rest);
        }
        program.freeAll(0);
    }

    /// Something else takes all that the device has left, also what a page on the host sets free.
    static void withoutRoom(GpuProgram program) {
        fragment(program);
        program.gpu.holdBack(0, program.gpu.devices().totalBytes(0));
        try {
            compact(program, WorkPause.ofOneThread());
        } finally {
            program.gpu.holdBack(0, 0);
        }
        compact(program, WorkPause.ofOneThread());
        program.freeAll(0);
    }

    private static void compact(GpuProgram program, WorkPause pause) {
        try (Registration _ = program.memory.listeners().onCompaction(pause)) {
            program.allocator.compact(0);
        }
    }

    /// The blocks come to lie in pages that a larger one had, so that the gaps end within pages.
    private static void fragment(GpuProgram program) {
        program.free(program.allocate(512 * MIB, 0), 0);
        List<Long> gaps = new ArrayList<>();
        for (int i = 0; i < BLOCKS; i++) {
            program.allocate(3 * MIB, 0);
            gaps.add(program.allocate(3 * MIB, 0));
        }
        gaps.forEach(gap -> program.free(gap, 0));
        program.gpu.streams().synchronize(0, program.streams[0]);
        program.allocator.trim(0, 0, TrimMode.SYNCHRONIZE);
    }
}
