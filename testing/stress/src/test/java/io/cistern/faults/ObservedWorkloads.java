package io.cistern.faults;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;

/// What programs do while somebody observes them.
final class ObservedWorkloads {
    private ObservedWorkloads() {}

    /// Blocks, pools, scopes, streams and swaps; observers that come and go; questions about segments.
    static void all(GpuProgram program) throws Exception {
        if (program.allocator.isClosed()) {
            return; // by a time before
        }
        program.observe(true);
        Workload.TRAFFIC.run(program);
        Workload.POOLS.run(program);
        Registration second = program.memory.listeners().onRareEvent(_ -> {});
        program.toClose.add(second);
        program.memory.listeners().annotate("streams");
        try (CudaStream one = CudaStream.open(program.memory, 0);
                CudaStream other = CudaStream.open(program.memory, 0)) {
            one.await(other);
        }
        second.close();
        segments(program);
        Workload.LIFE.run(program);
    }

    private static void segments(GpuProgram program) {
        Allocator unused = program.memory.open(OpenOptions.spec(program.allocator.spec()));
        program.toClose.add(unused);
        for (Allocator each : program.memory.allocators()) {
            each.segments(0);
        }
        unused.close();
        unused.segments(0);
    }

    /// Requests that find no memory.
    static void full(GpuProgram program) throws Exception {
        program.observe(true);
        Workload.FULL.run(program);
        Workload.LENDING.run(program);
    }

    static void graphs(GpuProgram program) throws Exception {
        program.observe(true);
        Workload.GRAPHS.run(program);
        Workload.CHECKPOINTS.run(program);
        Workload.LAUNCHES.run(program);
    }

    /// All but blocks.
    static void rarely(GpuProgram program) throws Exception {
        program.observe(false);
        Workload.TRAFFIC.run(program);
        program.freeAll(1);
    }

    /// Everything is recorded.
    static void history(GpuProgram program) throws Exception {
        program.observe(true);
        MemoryHistory history = MemoryHistory.of(program.memory);
        history.start(HistoryOptions.withoutStacks());
        program.memory.listeners().annotate("first");
        read(history);
        history.start(HistoryOptions.withStacks());
        Workload.BATCHES.run(program);
        program.memory.listeners().annotate("step");
        read(history);
        history.stop();
    }

    private static void read(MemoryHistory history) {
        history.options();
        for (HistoryEntry entry : history.entries()) {
            entry.thread();
            entry.site();
        }
    }
}
