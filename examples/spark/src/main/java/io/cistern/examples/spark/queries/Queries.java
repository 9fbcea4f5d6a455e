package io.cistern.examples.spark.queries;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.examples.spark.engine.Operators;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/// Measures the queries with several allocators in turns: `SCALE TURNS MODE,… SPEC …`. Prints a line of
/// JSON for each query and one for all, and ends with 1 if a result is not DuckDB's. An allocator in C
/// counts as `library`.
///
/// The modes are `one` thread; `eight` threads; and `short`, eight tasks on a device with half of the
/// memory that eight threads want together. In each turn every allocator is opened, runs all queries once
/// to warm up, while the device's free memory is read after each allocation, then once to be measured,
/// and is closed.
public final class Queries {
    private static final int DEVICE = 0;
    private static final int THREADS = 8;
    private static final int WARM_UP_PASSES = 2;
    private static final long SPILL_BYTES = 24L << 30;

    private final DeviceMemory memory;
    private final Tables tables;
    private final double scale;
    private final Map<Query, List<String>> expected;
    private final boolean hasExpected;
    private boolean isRight = true;

    private Queries(DeviceMemory memory, Tables tables, double scale) throws IOException {
        this.memory = memory;
        this.tables = tables;
        this.scale = scale;
        Map<Query, List<String>> read = Expected.read(scale);
        hasExpected = read != null;
        expected = read == null ? new HashMap<>() : read;
    }

    /// Runs the measurement.
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 4) {
            throw new IllegalArgumentException("arguments: SCALE TURNS MODE,... SPEC ...");
        }
        System.exit(run(DeviceMemory.system(), arguments) ? 0 : 1);
    }

    /// Runs the measurement on some device memory; returns whether all results are right.
    static boolean run(DeviceMemory memory, String... arguments) throws Exception {
        double scale = Double.parseDouble(arguments[0]);
        int turns = Integer.parseInt(arguments[1]);
        List<String> specs = List.of(arguments).subList(3, arguments.length);
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                Operators operators = new Operators(stream, DEVICE, null)) {
            Queries queries = new Queries(memory, new Tables(operators, scale, Expected.SEED, Slice.ALL), scale);
            stream.synchronize();
            queries.warmUp(specs.getLast());
            for (String mode : arguments[2].split(",", -1)) {
                switch (mode) {
                    case "one" -> queries.turns(mode, turns, specs, 1, 0);
                    case "eight" -> queries.turns(mode, turns, specs, THREADS, 0);
                    case "short" -> queries.withMemoryShort(turns, specs);
                    default -> throw new IllegalArgumentException("no mode " + mode + "; valid: one, eight, short");
                }
            }
            return queries.isRight;
        }
    }

    /// Lets the JVM compile and the driver load what they need.
    private void warmUp(String spec) throws Exception {
        try (Load load = new Load(memory, tables, spec, 1, 0)) {
            for (int i = 0; i < WARM_UP_PASSES; i++) {
                load.pass(false);
            }
        }
    }

    private void withMemoryShort(int turns, List<String> specs) throws Exception {
        long wanted;
        try (Load load = new Load(memory, tables, specs.getLast(), THREADS, 0)) {
            load.pass(false);
            wanted = load.requestedPeakBytes();
        }
        long rest = memory.driver().memory().freeBytes(DEVICE) - wanted / 2;
        if (rest <= 0) {
            throw new IllegalStateException("less than half of the " + wanted + " bytes wanted is free");
        }
        try (CudaStream stream = CudaStream.open(memory, DEVICE);
                var direct = memory.open("direct");
                DeviceBuffer _ = DeviceBuffer.allocate(direct, rest, DEVICE, stream.handle())) {
            System.out.printf(
                    Locale.ROOT,
                    "{\"what\": \"memory short\", \"wantedBytes\": %d, \"leftBytes\": %d}%n",
                    wanted,
                    memory.driver().memory().freeBytes(DEVICE));
            turns("short", turns, specs, THREADS, SPILL_BYTES);
        }
    }

    private void turns(String mode, int turns, List<String> specs, int threads, long spillBytes)
            throws IOException, InterruptedException {
        for (int turn = 1; turn <= turns; turn++) {
            for (String spec : specs) {
                String head = String.format(
                        Locale.ROOT,
                        "{\"mode\": \"%s\", \"scale\": %s, \"allocator\": \"%s\", \"turn\": %d",
                        mode,
                        scale,
                        spec.startsWith("library:") ? "library" : spec,
                        turn);
                try (Load load = new Load(memory, tables, spec, threads, spillBytes)) {
                    check(load.pass(true));
                    print(head, load, load.pass(false));
                } catch (ExecutionException | RuntimeException failed) {
                    isRight = false;
                    System.out.println(head + ", \"failure\": \""
                            + (failed.getCause() == null ? failed : failed.getCause())
                                    .toString()
                                    .replaceAll("[\"\\\\\\p{Cntrl}]", " ")
                            + "\"}");
                }
                System.out.flush();
            }
        }
    }

    private void print(String head, Load load, Load.Pass pass) {
        boolean right = check(pass);
        Map<Query, List<Load.Run>> byQuery = pass.runs().stream().collect(Collectors.groupingBy(Load.Run::query));
        for (Query query : Query.values()) {
            print(head, query.name(), byQuery.getOrDefault(query, List.of()), -1, right, "");
        }
        print(
                head,
                "all",
                pass.runs(),
                pass.nanos(),
                right,
                String.format(
                        Locale.ROOT,
                        ", \"mostBytes\": %d, \"requestedPeakBytes\": %d, \"spilledBytes\": %d, \"retries\": %d",
                        load.mostBytes(),
                        load.requestedPeakBytes(),
                        load.spilledBytes(),
                        pass.tasks().stream().mapToLong(task -> task.retries()).sum()));
    }

    /// @param nanos of all together; -1 for the mean of the runs
    private void print(String head, String query, List<Load.Run> runs, long nanos, boolean right, String more) {
        double mean = runs.stream().mapToLong(Load.Run::nanos).average().orElseThrow();
        System.out.printf(
                Locale.ROOT,
                "%s, \"query\": \"%s\", \"seconds\": %.6f, \"allocatorSeconds\": %.6f, \"calls\": %d, \"right\": %s, "
                        + "\"checkedWith\": \"%s\"%s}%n",
                head,
                query,
                (nanos < 0 ? mean : nanos) / 1e9,
                runs.stream().mapToLong(run -> run.allocator().nanos()).sum() / 1e9 / (nanos < 0 ? runs.size() : 1),
                runs.stream().mapToLong(run -> run.allocator().count()).sum() / (nanos < 0 ? runs.size() : 1),
                right,
                hasExpected ? "DuckDB" : "the first run",
                more);
    }

    private boolean check(Load.Pass pass) {
        boolean right = true;
        for (Load.Run run : pass.runs()) {
            List<String> rows = expected.computeIfAbsent(run.query(), _ -> run.rows());
            right &= rows.equals(run.rows());
        }
        isRight &= right;
        return right;
    }
}
