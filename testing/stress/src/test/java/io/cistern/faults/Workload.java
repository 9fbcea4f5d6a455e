package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Listeners;
import io.cistern.MemoryLimit;
import io.cistern.MemoryMeasure;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CaptureMode;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.nccl.BufferRegistration;
import io.cistern.nccl.Communicator;
import io.cistern.nccl.Nccl;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import java.time.Duration;
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
    },

    /// Live memory that moves, on demand and for a request.
    COMPACTS(true) {
        @Override
        void run(GpuProgram program) {
            CompactionWorkload.onDemand(program);
            CompactionWorkload.forRequest(program);
            CompactionWorkload.withoutRoom(program);
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
            program.memory.pools().begin(pool, 0);
            try {
                program.allocate(5000, 2);
            } finally {
                program.memory.pools().end(pool, 0);
            }
            program.allocator.run(ScopeOptions.all(), () -> program.allocate(5000, 2));
            program.freeAll(0);
            pool.close();
            tagged(program);
        }

        private void tagged(GpuProgram program) {
            if (!program.allocator.name().startsWith("caching")) {
                return;
            }
            MemoryPool tagged = MemoryPool.builder(program.memory)
                    .spec("caching")
                    .tag("tag")
                    .open();
            program.toClose.add(tagged);
            program.allocate(tagged, 3 << 20, 0);
            program.memory.pools().sleep("tag", SleepMode.KEEP);
            program.memory.pools().wake("tag");
            program.freeAll(0);
            tagged.close();
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
            if (program.allocator.isClosed()) {
                return; // by a time before
            }
            program.allocate(5000, 0);
            program.allocate(5 << 20, 0);
            program.allocator.statistics(0);
            program.allocator.memoryStatistics(0);
            program.allocator.memorySummary(0);
            program.allocator.resetPeaks(0);
            program.allocator.resetTotals(0);
            program.memory.liveBlocks();
            program.memory.currents().set(program.memory.open("direct"));
            program.freeAfter(program.allocate(6000, 0), program.event(1));
            program.freeAll(0);
            program.memory.currents().set(program.allocator);
            program.allocate(5000, 0);
            program.memory.setCurrent("direct");
            program.allocator.close();
            program.freeAll(0);
        }
    },

    /// Listeners of thresholds, of the end of streams and of memory that runs short; a budget that becomes smaller.
    LISTENERS(true) {
        @Override
        void run(GpuProgram program) {
            Listeners listeners = program.memory.listeners();
            program.toClose.add(listeners.onThreshold(0, MemoryMeasure.REQUESTED, 4 << 20, (_, _, _) -> {}));
            program.toClose.add(listeners.onThreshold(0, MemoryMeasure.REQUESTED, 1 << 20, (_, _, _) -> {}));
            program.toClose.add(program.allocator.onThreshold(0, MemoryMeasure.REQUESTED, 2 << 20, (_, _, _) -> {}));
            program.toClose.add(listeners.onOverBudget(0, (_, _) -> {}));
            program.toClose.add(listeners.onMemoryPressure((_, _) -> 0));
            program.toClose.add(listeners.onStreamClosing((_, _) -> {}));
            for (int block = 0; block < 9; block++) {
                program.allocate(1 << 20, block % 2);
            }
            program.endStream(2);
            fill(program, 100 << 20);
            program.freeAll(1);
            MemoryLimit child = program.limit.child("child", 8 << 20);
            try (Scope _ = program.allocator.enter(ScopeOptions.all().limit(child))) {
                program.allocate(6 << 20, 0);
                child.setByteSize(4 << 20);
            }
            program.freeAll(0);
        }
    },

    /// Pools of two functions and with limits, one of which lends what is idle to others.
    LENDING(true) {
        @Override
        void run(GpuProgram program) {
            program.freeAll(0); // of a time before that failed
            program.memory.trim(0, 0, TrimMode.SYNCHRONIZE);
            MemoryPool functions = MemoryPool.builder(program.memory)
                    .functions(
                            (byteSize, device) -> program.gpu.memory().allocate(device, byteSize),
                            (address, _, device) -> program.gpu.memory().free(device, address))
                    .open();
            program.toClose.add(functions);
            program.allocate(functions, 3 << 20, 0);
            program.allocate(functions, 5000, 1);
            if (program.allocator.name().startsWith("caching")) {
                MemoryPool lender = MemoryPool.builder(program.memory)
                        .spec("caching")
                        .lendsToOthers(true)
                        .limitBytes(800 << 20)
                        .initialBytes(700 << 20, 0, program.streams[0])
                        .open();
                program.toClose.add(lender);
                try (lender) {
                    fill(program, 60 << 20);
                    program.freeAll(1);
                }
            }
            program.freeAll(0);
            functions.close();
        }
    },

    /// Many streams that end, with blocks alive on them and pages left behind, and streams that come after them.
    ENDS(true) {
        @Override
        void run(GpuProgram program) {
            for (int round = 0; round < 14; round++) {
                int stream = round % 3;
                program.allocate(3 << 20, stream);
                program.allocate(40_000, stream);
                program.allocate(500, stream);
                long other = program.block(0);
                program.memory.recordUse(other, program.streams[(stream + 1) % 3]);
                if (round % 2 == 0) {
                    program.free(other, stream);
                } else {
                    program.freeAll(stream);
                }
                program.endStream(round % 4 == 3 ? (stream + 1) % 3 : stream);
            }
            program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
            program.freeAll(0);
        }
    },

    /// Two captures at once, graphs that share their memory, and what has to wait for the end of captures.
    CAPTURES(false) {
        @Override
        void run(GpuProgram program) throws Exception {
            DeviceMemory memory = program.memory;
            Allocator second = memory.open(OpenOptions.spec(program.allocator.spec()));
            program.toClose.add(second);
            Allocator idle = memory.open(OpenOptions.spec(program.allocator.spec()));
            program.toClose.add(idle);
            program.free(program.allocate(idle, 2 << 20, 2), 2);
            long before = program.allocate(second, 2 << 20, 2);
            long used = program.allocate(1 << 20, 2);
            program.memory.recordUse(used, program.streams[0]);
            GraphMemory shared;
            try (GraphCapture one = begin(program, 0);
                    GraphCapture two = begin(program, 1)) {
                shared = one.memory();
                GraphMemory.ofCapture(memory, 0, program.streams[0]);
                shared.whenGone(() -> {});
                program.allocate(2 << 20, 0);
                program.allocate(3000, 1);
                program.allocate(3000, 2);
                program.free(before, 1);
                program.free(used, 2);
                second.close();
                idle.close();
                memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
                GraphWorkloads.destroyed(program, two.end());
                GraphWorkloads.destroyed(program, one.end());
            }
            try (GraphCapture again = GraphCapture.begin(memory, 0, program.streams[0], CaptureMode.RELAXED, shared)) {
                program.free(program.allocate(1 << 20, 0), 0);
                GraphWorkloads.destroyed(program, again.end());
            }
            program.freeAll(2);
            begin(program, 2).close();
            GraphMemory.collect(memory);
        }

        private GraphCapture begin(GpuProgram program, int stream) {
            return GraphWorkloads.begin(program, stream, GraphWorkloads.memory(program));
        }
    },

    /// As traffic, of a program that wants to know who made each block, and which scopes were left open.
    LEAKS(true) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(
                    spec, 1, builder -> builder.leakLevel(LeakLevel.ALL).reportScopes(true));
        }

        @Override
        void run(GpuProgram program) throws Exception {
            TRAFFIC.run(program);
            try (Scope _ = program.allocator.enter(ScopeOptions.all().device(0))) {
                program.allocate(5000, 0);
            }
            program.memory.liveBlocks();
            program.freeAll(1);
        }
    },

    /// As traffic, of a program that wants to know that of some blocks.
    SAMPLED_LEAKS(true) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(spec, 1, builder -> builder.leakLevel(LeakLevel.SAMPLED));
        }

        @Override
        void run(GpuProgram program) throws Exception {
            TRAFFIC.run(program);
            program.freeAll(1);
        }
    },

    /// A pool that a communicator of NCCL registers, of segments that NCCL can share.
    REGISTRATION(true) {
        @Override
        void run(GpuProgram program) {
            MemoryPool pool = program.memory.pools().open("nccl");
            program.toClose.add(pool);
            program.allocate(pool, 3 << 20, 0);
            Communicator rank = Nccl.of(program.memory).initAll(0).getFirst();
            program.toClose.add(rank);
            BufferRegistration registration = rank.register(pool);
            program.allocate(pool, 30 << 20, 0);
            program.freeAll(0);
            pool.trim(0, 0, TrimMode.SYNCHRONIZE);
            registration.close();
            pool.close();
        }
    },

    CURRENTS(true, PoolWorkloads::currents),
    CHECKPOINTS(false, GraphWorkloads::checkpoints),
    LAUNCHES(false, GraphWorkloads::launches),
    GIVEN_UP(false, GraphWorkloads::givenUp),
    PASSED_ON(false, GraphWorkloads::passedOn),
    FORKS(false, GraphWorkloads::forks),
    ANNOUNCED(false, GraphWorkloads::announced),
    FULL_CAPTURE(false, GraphWorkloads::full),
    SECOND_MEMORY(true, PoolWorkloads::secondMemory),
    LIMITS(true, PoolWorkloads::limits),
    LIVE_LIMITS(true, PoolWorkloads::liveLimits),
    MADE(true, PoolWorkloads::made),

    PEERS(true, PoolWorkloads::peers) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(spec, 2, builder -> {});
        }
    },

    SCOPES_OF_OTHERS(true, PoolWorkloads::scopesOfOthers) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(spec, 1, builder -> builder.reportScopes(true));
        }
    },

    MISSPELT(true, PoolWorkloads::misspelt),
    ROUTE(true, PoolWorkloads::route),

    WAITS(true, PoolWorkloads::waits) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(spec, 1, builder -> builder.waitForFrees(Duration.ofMillis(1)));
        }
    },

    BUFFERS(true, PoolWorkloads::buffers) {
        @Override
        GpuProgram program(String spec) {
            return new GpuProgram(spec, 1, builder -> builder.leakLevel(LeakLevel.SITES));
        }
    },

    VIEWS(true, BufferWorkloads::views),
    FOREIGN(true, BufferWorkloads::foreign),
    COPIES(true, BufferWorkloads::copies),
    PINNED(true, BufferWorkloads::pinned),
    ARENAS(true, BufferWorkloads::arenas),
    TENSORS(true, BufferWorkloads::tensors),
    HANDLES(true, HandleWorkloads::all),
    TASKS(true, TaskWorkloads::all),
    THREADS(true, StreamWorkloads::threads),
    CROWD(true, StreamWorkloads::crowd),
    QUIET(true, StreamWorkloads::quiet),
    SMALL(true, StreamWorkloads::small),
    REMEMBERED(true, StreamWorkloads::remembered),
    GROWING(true, StreamWorkloads::growing),
    BUSY_ENDS(true, StreamWorkloads::busyEnds),
    OBSERVED(true, ObservedWorkloads::all),
    OBSERVED_FULL(true, ObservedWorkloads::full),
    OBSERVED_GRAPHS(false, ObservedWorkloads::graphs),
    RARELY_OBSERVED(true, ObservedWorkloads::rarely),
    RECORDED(true, ObservedWorkloads::history),
    WINDOWS(true, NcclWorkloads::windows),
    BESIDE_CALLS(true, NcclWorkloads::besideCalls),
    SPILLS(true, SpillWorkloads::all),
    REFUSING_NCCL(true, NcclWorkloads::refusals),
    TRIALS(true, NcclWorkloads::trials),
    REFUSALS(true, RefusalWorkloads::oneCall),
    REFUSED_TWICE(true, RefusalWorkloads::severalCalls),
    REFUSED_ENDS(true, RefusalWorkloads::ends),
    REFUSED_FREES(true, RefusalWorkloads::manyFrees),
    REFUSED_SLEEP(true, RefusalWorkloads::sleeps);

    /// Whether it uses gigabytes, or all of the device.
    boolean fills() {
        return this == QUIET
                || this == FULL
                || this == LENDING
                || this == LISTENERS
                || this == CROWD
                || this == OBSERVED_FULL;
    }

    /// Whether the driver refuses what others need not survive: it may keep memory then.
    boolean isRefused() {
        return ordinal() >= REFUSING_NCCL.ordinal();
    }

    /// Whether it works with objects that hold blocks: these may lose one that [DeviceMemory#liveBlocks] shows.
    boolean mayLeak() {
        return ordinal() >= BUFFERS.ordinal() && ordinal() <= HANDLES.ordinal();
    }

    /// Whether a virtual thread can do it.
    final boolean onVirtualThreads;

    private final Action action;

    Workload(boolean onVirtualThreads) {
        this(onVirtualThreads, _ -> {});
    }

    Workload(boolean onVirtualThreads, Action action) {
        this.onVirtualThreads = onVirtualThreads;
        this.action = action;
    }

    /// What a program does.
    private interface Action {
        void run(GpuProgram program) throws Exception;
    }

    private static void fill(GpuProgram program, long byteSize) {
        try {
            for (int i = 0; i < 100; i++) {
                program.allocate(byteSize, i % 3);
            }
        } catch (DeviceOutOfMemoryException _) {
            program.memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
        }
    }

    GpuProgram program(String spec) {
        return new GpuProgram(spec, 1, builder -> {});
    }

    /// Done before anything fails.
    void prepare(GpuProgram program) {}

    void run(GpuProgram program) throws Exception {
        action.run(program);
    }
}
