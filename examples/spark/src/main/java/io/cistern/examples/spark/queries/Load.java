package io.cistern.examples.spark.queries;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.ScopeOptions;
import io.cistern.examples.spark.engine.Operators;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.Task;
import io.cistern.pressure.TaskArbiter;
import io.cistern.pressure.TaskStatistics;
import io.cistern.spi.TrimMode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Runs all queries with one allocator, from one or more threads, each with a stream of its own. Threads
/// that share too little memory run as tasks: their columns spill, and they wait, roll back and run again.
final class Load implements AutoCloseable {
    private static final int DEVICE = 0;

    private final DeviceMemory memory;
    private final Tables tables;
    private final int threads;
    private final Allocator base;
    private final Allocator timed;
    private final TimedAllocator timer;
    private final @Nullable Tasks tasks;
    private final long freeBytesBefore;

    /// Tasks over the allocator, and where their columns go.
    private record Tasks(Allocator allocator, TaskArbiter arbiter, SpillStore spills, Path directory) {
        Task task(int thread) {
            return arbiter.task(thread, 0);
        }

        void close() throws IOException {
            spills.close();
            allocator.close();
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path file :
                        files.sorted((one, other) -> other.compareTo(one)).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    /// One run of a query.
    ///
    /// @param allocator its thread's calls of the allocator
    record Run(Query query, long nanos, TimedAllocator.Calls allocator, List<String> rows) {}

    /// All queries once on each thread.
    ///
    /// @param nanos from the first query's begin to the last one's end
    record Pass(long nanos, List<Run> runs, List<TaskStatistics> tasks) {}

    /// @param spillBytes pinned memory for columns that leave the device; 0 for threads that are no tasks
    Load(DeviceMemory memory, Tables tables, String spec, int threads, long spillBytes) throws IOException {
        this.memory = memory;
        this.tables = tables;
        this.threads = threads;
        freeBytesBefore = memory.driver().memory().freeBytes(DEVICE);
        base = memory.open(spec);
        List<TimedAllocator> made = new ArrayList<>();
        timed = memory.open(OpenOptions.around("timed", base, upstream -> {
            made.add(new TimedAllocator(upstream, memory.driver()));
            return made.getFirst();
        }));
        timer = made.getFirst();
        tasks = spillBytes == 0 ? null : tasks(memory, timed, spillBytes);
    }

    private static Tasks tasks(DeviceMemory memory, Allocator shared, long spillBytes) throws IOException {
        List<TaskArbiter> made = new ArrayList<>();
        Allocator allocator = memory.open(OpenOptions.around("tasks", shared, upstream -> {
            made.add(new TaskArbiter(upstream));
            return made.getFirst();
        }));
        Path directory = Files.createTempDirectory("queries");
        SpillStore spills = SpillStore.open(memory, made.getFirst(), spillBytes, directory);
        return new Tasks(allocator, made.getFirst(), spills, directory);
    }

    /// Runs all queries once on each thread; the threads begin with different ones.
    ///
    /// @param looks whether to read the device's free memory after each allocation, which takes time
    Pass pass(boolean looks) throws InterruptedException, ExecutionException {
        timer.look(looks);
        CyclicBarrier begin = new CyclicBarrier(threads);
        List<Run> runs = new ArrayList<>();
        List<TaskStatistics> statistics = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<Worked>> working = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                int thread = i;
                working.add(executor.submit(() -> work(thread, begin)));
            }
            long first = Long.MAX_VALUE;
            long last = Long.MIN_VALUE;
            for (Future<Worked> each : working) {
                Worked worked = each.get();
                runs.addAll(worked.runs);
                statistics.addAll(worked.statistics);
                first = Math.min(first, worked.begin);
                last = Math.max(last, worked.end);
            }
            return new Pass(last - first, runs, statistics);
        }
    }

    /// The work of one thread.
    private record Worked(long begin, long end, List<Run> runs, List<TaskStatistics> statistics) {}

    private Worked work(int thread, CyclicBarrier begin) throws Exception {
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                Operators operators = new Operators(stream, DEVICE, tasks == null ? null : tasks.spills)) {
            begin.await();
            long from = System.nanoTime();
            List<Query> queries = new ArrayList<>(List.of(Query.values()));
            Collections.rotate(queries, -thread);
            List<Run> runs = new ArrayList<>();
            for (Query each : queries) {
                runs.add(run(each, operators, thread));
            }
            return new Worked(
                    from,
                    System.nanoTime(),
                    runs,
                    tasks == null ? List.of() : List.of(tasks.task(thread).statistics()));
        }
    }

    private Run run(Query query, Operators operators, int thread) {
        TimedAllocator.Calls before = timer.calls();
        long begin = System.nanoTime();
        List<String> rows = tasks == null
                ? within(timed, () -> query.run(operators, tables))
                : within(tasks.allocator, () -> tasks.task(thread).call(() -> query.run(operators, tables)));
        long nanos = System.nanoTime() - begin;
        return new Run(query, nanos, timer.calls().minus(before), rows);
    }

    private static List<String> within(
            Allocator allocator, ScopedValue.CallableOp<List<String>, RuntimeException> work) {
        return allocator.call(ScopeOptions.all(), work);
    }

    /// Returns the most device memory that was seen in use since this was opened.
    long mostBytes() {
        return freeBytesBefore - Math.min(freeBytesBefore, timer.leastFreeBytes());
    }

    /// Returns the most bytes that the queries asked for at once.
    long requestedPeakBytes() {
        return (tasks == null ? timed : tasks.allocator).statistics(DEVICE).requestedPeakBytes();
    }

    long spilledBytes() {
        return tasks == null ? 0 : tasks.spills.statistics().spilledBytes();
    }

    @Override
    public void close() throws IOException {
        if (tasks != null) {
            tasks.close();
        }
        timed.close();
        base.trim(DEVICE, 0, TrimMode.SYNCHRONIZE); // a library stays, and so does what it keeps
        base.close();
    }
}
