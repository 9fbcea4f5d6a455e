package io.cistern.faults;

import io.cistern.CudaStream;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.Random;

/// What programs do with many streams, and with as much memory as there is.
final class StreamWorkloads {
    private static final long MIB = 1 << 20;

    private StreamWorkloads() {}

    /// Threads end, and with them their default streams; one stream waits for another.
    static void threads(GpuProgram program) throws InterruptedException {
        for (int thread = 0; thread < 20; thread++) {
            Thread each = Thread.ofPlatform().daemon().start(() -> {
                long block = program.memory.allocate(3 * MIB, 0, Streams.PER_THREAD_DEFAULT);
                program.memory.free(block, Streams.PER_THREAD_DEFAULT);
            });
            each.join();
        }
        program.allocate(5000, 0);
        CudaStream waiting = CudaStream.ofForeign(program.memory, 0, program.streams[1]);
        waiting.await(CudaStream.ofForeign(program.memory, 0, program.streams[0]));
        program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
        program.freeAll(0);
    }

    /// Blocks of many sizes fill the device, while streams are busy.
    static void crowd(GpuProgram program) {
        Random random = new Random(5);
        for (int call = 0; call < 700; call++) {
            int stream = random.nextInt(3);
            if (random.nextInt(100) < 55) {
                allocate(program, random, stream);
            } else if (program.liveBlocks() > 0) {
                program.free(program.block(random.nextInt(program.liveBlocks())), stream);
            }
            if (random.nextInt(4) == 0) {
                program.gpu.keepBusy(0, program.streams[stream], 300_000);
            }
            if (random.nextInt(60) == 0) {
                program.endStream(random.nextInt(3));
            }
        }
        program.freeAll(0);
    }

    private static void allocate(GpuProgram program, Random random, int stream) {
        long byteSize = random.nextInt(3) == 0 ? (1L + random.nextInt(90)) * MIB : (1L + random.nextInt(3000)) << 11;
        try {
            program.allocate(byteSize, stream);
        } catch (DeviceOutOfMemoryException _) {
            program.free(program.block(0), stream);
        }
    }

    /// Large blocks that serve again for a long time, and then one that needs pages of others.
    static void quiet(GpuProgram program) {
        for (int block = 0; block < 4; block++) {
            program.allocate(50 * MIB, 1);
        }
        program.freeAll(1);
        for (int call = 0; call < 1100; call++) {
            program.free(program.allocate(3 * MIB, 0), 0);
        }
        program.allocate(150 * MIB, 0);
        program.allocate(300 * MIB, 2);
        program.freeAll(0);
    }

    /// Thousands of small blocks.
    static void small(GpuProgram program) {
        for (int round = 0; round < 2; round++) {
            for (int block = 0; block < 3000; block++) {
                program.allocate(512L << (block % 4), 0);
            }
            program.freeAll(round);
        }
        program.memory.trim(0, 0, TrimMode.SYNCHRONIZE);
    }

    /// More frees than an allocator remembers: a checked one the blocks, `symmetric` the fences of threads' own
    /// default streams.
    static void remembered(GpuProgram program) {
        if (program.allocator.spec().text().contains("checked")) {
            for (int call = 0; call < 16_500; call++) {
                program.allocate(512, 0);
            }
        }
        if (program.allocator.name().equals("symmetric")
                && !Thread.currentThread().isVirtual()) {
            for (int call = 0; call < 70; call++) {
                long block = program.memory.allocate(512, 0, Streams.PER_THREAD_DEFAULT);
                program.memory.free(block, Streams.PER_THREAD_DEFAULT);
            }
        }
        program.freeAll(0);
    }

    /// Blocks that grow again and again, each time at another place.
    static void growing(GpuProgram program) {
        if (!program.allocator.spec().text().contains("reuse=wait")) {
            return;
        }
        Random random = new Random(7);
        long[] blocks = new long[24];
        long[] sizes = new long[blocks.length];
        for (int call = 0; call < 9000; call++) {
            int at = random.nextInt(blocks.length);
            long grown = sizes[at] + sizes[at] / 16 + 512 + random.nextInt(64 << 10);
            sizes[at] = grown > 30 * MIB ? MIB + random.nextInt(14 << 20) : grown;
            long former = blocks[at];
            blocks[at] = program.allocate(sizes[at], 0);
            if (former != 0) {
                program.free(former, 0);
            }
        }
        program.freeAll(0);
    }

    /// Streams end in the middle of their work, and others use what they used.
    static void busyEnds(GpuProgram program) {
        for (int round = 0; round < 4; round++) {
            long block = program.allocate(3 * MIB, 0);
            program.allocate(5000, 1);
            program.memory.recordUse(block, program.streams[1]);
            program.memory.recordUse(block, program.streams[2]);
            program.memory.recordUse(block, program.streams[1]);
            program.gpu.keepBusy(0, program.streams[0], 3_000_000);
            program.gpu.keepBusy(0, program.streams[1], 3_000_000);
            program.freeAll(0);
            program.endStream(1);
            program.endStream(0);
            program.memory.trim(0, 0, round % 2 == 0 ? TrimMode.SYNCHRONIZE : TrimMode.WITHOUT_WAITING);
        }
    }
}
