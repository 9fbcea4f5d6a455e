package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.util.Random;

/// What a program does while one of its calls fails: together they reach what allocates.
enum Workload {
    /// Small and large blocks, freed in any order on any stream, with uses on others and streams that end.
    TRAFFIC(true) {
        @Override
        void prepare(GpuProgram program) {
            run(program, new Random(7), 60);
        }

        @Override
        void run(GpuProgram program) {
            run(program, new Random(3), 600);
        }

        private void run(GpuProgram program, Random random, int calls) {
            for (int call = 0; call < calls; call++) {
                step(program, random, random.nextInt(100));
            }
        }

        private void step(GpuProgram program, Random random, int choice) {
            int stream = random.nextInt(program.streams.length);
            if (choice < 46) {
                if (program.liveBlocks() < 80) {
                    program.allocate(size(random, choice), stream);
                }
            } else if (choice < 88 && program.liveBlocks() > 0) {
                int at = random.nextBoolean() ? 0 : program.liveBlocks() - 1;
                program.free(program.block(at), stream);
            } else if (choice < 92 && program.liveBlocks() > 0) {
                program.memory.recordUse(program.block(program.liveBlocks() - 1), program.streams[stream]);
            } else if (choice < 93) {
                program.allocator.trim(0, 0, TrimMode.WITHOUT_WAITING);
            } else if (choice < 94) {
                program.endStream(stream);
            } else if (choice < 95) {
                program.gpu.streams().synchronize(0, program.streams[stream]);
            }
        }

        private long size(Random random, int choice) {
            return choice < 8 ? (1L + random.nextInt(6)) << 20 : 512L * (1 + random.nextInt(40));
        }
    },

    /// Many blocks of one size from thread caches, and frees that wait for work of other streams.
    BATCHES(true) {
        @Override
        void run(GpuProgram program) {
            for (int round = 0; round < 3; round++) {
                for (int block = 0; block < 300; block++) {
                    program.allocate(block % 100 == 99 ? 3 << 20 : 4096L << (block % 3), round);
                }
                for (int block = 0; block < 100; block++) {
                    program.memory.recordUse(program.block(block), program.streams[(round + 1) % 3]);
                }
                program.freeAll((round + 2) % 3);
            }
            program.allocator.trim(0, 1 << 20, TrimMode.WITHOUT_WAITING);
            program.allocator.trim(0, 0, TrimMode.SYNCHRONIZE);
        }
    },

    /// More than the device has.
    FULL(true) {
        @Override
        void run(GpuProgram program) {
            for (long byteSize : new long[] {64 << 20, 3 << 20}) {
                fill(program, byteSize);
                for (int i = 0; i < 5; i++) {
                    program.free(program.block(i), i % 3);
                }
                fill(program, byteSize / 2);
                program.freeAll(1);
            }
        }

        private void fill(GpuProgram program, long byteSize) {
            try {
                for (int i = 0; i < 100; i++) {
                    program.allocate(byteSize, i % 3);
                }
            } catch (DeviceOutOfMemoryException _) {
                program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
            }
        }
    },

    /// A pool, scopes with limits, a sleep.
    POOLS(true) {
        @Override
        void run(GpuProgram program) throws Exception {
            MemoryPool pool =
                    program.memory.pools().open(program.allocator.name().startsWith("async") ? "async" : "caching");
            program.toClose.add(pool);
            try (Scope _ = pool.enter(ScopeOptions.all().device(0))) {
                program.allocate(1 << 20, 0);
                program.allocate(5000, 1);
                try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(MemoryLimit.of("scope", 10 << 20)))) {
                    program.allocate(700, 0);
                }
            }
            try (Scope _ = program.allocator.enter(ScopeOptions.all().stream(0, program.streams[0]))) {
                program.allocate(700, 0);
            }
            program.freeAll(1);
            program.gpu.streams().synchronize(0, program.streams[1]);
            pool.trim(0, 0, TrimMode.SYNCHRONIZE);
            if (program.allocator.name().startsWith("caching")) {
                program.allocate(pool, 5000, 0);
                pool.sleep(SleepMode.KEEP);
                pool.wake();
                program.freeAll(0);
            }
            pool.close();
        }
    },

    /// Graphs that allocate.
    GRAPHS(false) {
        @Override
        void run(GpuProgram program) throws Exception {
            long before = program.allocate(1 << 20, 0);
            long graph;
            try (GraphCapture capture =
                    GraphCapture.begin(program.memory, 0, program.streams[0], CaptureMode.RELAXED)) {
                program.graphs.add(capture.memory());
                long inside = program.allocate(1 << 20, 0);
                program.allocate(3000, 0);
                program.free(inside, 0);
                program.free(before, 0);
                program.allocate(100_000, 1);
                graph = capture.end();
            }
            program.toClose.add(() -> program.gpu.graphs().destroy(0, graph));
            long executable = program.gpu.graphs().instantiate(0, graph, true);
            program.toClose.add(() -> program.gpu.graphs().destroyExecutable(0, executable));
            program.gpu.graphs().launch(0, executable, program.streams[0]);
            program.gpu.streams().synchronize(0, program.streams[0]);
            program.freeAll(1);
        }
    },

    /// A second allocator is opened, used and closed.
    OPEN(true) {
        @Override
        void run(GpuProgram program) {
            Allocator second = program.memory.open(OpenOptions.spec(program.allocator.spec()));
            program.toClose.add(second);
            program.allocate(second, 5000, 0);
            program.allocate(second, 3 << 20, 1);
            program.freeAll(0);
            program.allocate(second, 5000, 0);
            second.close();
            program.freeAll(0);
        }
    },

    /// Another allocator becomes the current one while blocks are alive, and is asked for figures.
    LIFE(true) {
        @Override
        void run(GpuProgram program) {
            program.allocate(5000, 0);
            program.allocate(5 << 20, 0);
            program.allocator.statistics(0);
            program.allocator.memoryStatistics(0);
            program.allocator.memorySummary(0);
            program.allocator.resetPeaks(0);
            program.allocator.resetTotals(0);
            program.memory.leaks();
            program.memory.currents().set(program.memory.open("direct"));
            program.freeAfter(program.allocate(6000, 0), event(program));
            program.freeAll(0);
            program.memory.currents().set(program.allocator);
            program.allocate(5000, 0);
            program.memory.currents().swap("direct");
            program.freeAll(0);
        }

        private long event(GpuProgram program) {
            long event = program.gpu.events().create(0);
            program.gpu.events().record(0, event, program.streams[1]);
            program.toClose.add(() -> program.gpu.events().destroy(0, event));
            return event;
        }
    };

    /// Whether a virtual thread can do it.
    final boolean onVirtualThreads;

    Workload(boolean onVirtualThreads) {
        this.onVirtualThreads = onVirtualThreads;
    }

    /// Done before anything fails.
    void prepare(GpuProgram program) {}

    abstract void run(GpuProgram program) throws Exception;
}
