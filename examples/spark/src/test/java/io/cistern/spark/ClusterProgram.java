package io.cistern.spark;

import static org.apache.spark.sql.functions.col;

import io.cistern.CudaStream;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.examples.spark.queries.Expected;
import io.cistern.examples.spark.queries.Query;
import io.cistern.examples.spark.queries.QueryJob;
import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import io.cistern.spark.barrier.BarrierStage;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/// A cluster of some executors, each with a device of its own, that does a job and loses an executor in the middle of
/// it: that of [Sales], which also reduces in a barrier stage, or the [queries][QueryJob]. Prints a line of JSON for
/// each step; ends with 1 if anything is wrong. The seconds of a query include drawing its tables.
///
/// Arguments: `sales DRIVER EXECUTORS ROWS DEVICE_MEBIBYTES`, as `sales cuda 2 4000000 64`, or
/// `queries DRIVER EXECUTORS SCALE DEVICE_MEBIBYTES`, as `queries cuda 2 10 16384`.
public final class ClusterProgram {
    private static final int ARTICLES = 1_000;
    private static final int REDUCED_BYTES = 4 << 20;

    private final String what;
    private final String driver;
    private final int executors;
    private final String size;
    private final SparkSession session;
    private final SparkCluster cluster;
    private boolean isRight = true;

    private ClusterProgram(String[] arguments, Path home) throws IOException {
        what = arguments[0];
        driver = arguments[1];
        executors = Integer.parseInt(arguments[2]);
        size = arguments[3];
        cluster = SparkCluster.start(home, executors);
        session = SparkSession.builder()
                .master(cluster.master())
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.plugins", CisternPlugin.class.getName())
                .config("spark.executor.memory", "1g")
                .config("spark.executor.cores", "2")
                .config("spark.executor.resource.gpu.amount", "1")
                .config("spark.task.resource.gpu.amount", "0.5")
                .config("spark.cistern.task.limit", "none")
                .config("spark.cistern.driver", driver)
                .config("spark.cistern.allocator", "caching:max_bytes=" + arguments[4] + "MiB")
                .config("spark.cistern.figures.interval", "100ms")
                .getOrCreate();
    }

    /// Runs it.
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 5) {
            throw new IllegalArgumentException("arguments: sales|queries DRIVER EXECUTORS SIZE DEVICE_MEBIBYTES");
        }
        ClusterProgram program = new ClusterProgram(arguments, Files.createTempDirectory("cistern-spark"));
        boolean isRight;
        try {
            isRight = program.run();
        } finally {
            program.session.stop();
            program.cluster.close();
        }
        System.exit(isRight ? 0 : 1);
    }

    private boolean run() throws Exception {
        Eventually.holds(() -> ClusterFigures.ofProcess().executorCount() == executors);
        switch (what) {
            case "sales" -> doSales();
            case "queries" -> doQueries(Double.parseDouble(size));
            default -> throw new IllegalArgumentException("no job " + what + "; legal: sales, queries");
        }
        emptied();
        return isRight;
    }

    private void doQueries(double scale) throws Exception {
        Map<Query, List<String>> expected =
                Objects.requireNonNull(Expected.read(scale), "no results of DuckDB at scale " + scale);
        queries(scale); // compiles the kernels
        for (Query query : Query.values()) {
            long begun = System.nanoTime();
            List<String> rows = query(query, scale);
            double seconds = seconds(begun);
            tell(query.name(), rows.equals(expected.get(query)), ", \"scale\": %s, \"seconds\": %.3f", scale, seconds);
        }
        if (executors > 1) {
            kill(() -> queries(scale), expected);
        }
    }

    private Map<Query, List<String>> queries(double scale) {
        return Arrays.stream(Query.values())
                .collect(Collectors.toMap(Function.identity(), query -> query(query, scale)));
    }

    private List<String> query(Query query, double scale) {
        return QueryJob.run(session, query, scale, 2 * executors);
    }

    private void doSales() throws Exception {
        long begunCpu = System.nanoTime();
        List<Row> expected = Sales.sumsOnCpu(sales()).collectAsList();
        double cpuSeconds = seconds(begunCpu);
        job("warm_up", expected, cpuSeconds);
        job("job", expected, cpuSeconds);
        if (executors > 1) {
            allReduce("all_reduce");
            brokenMember();
            allReduce("all_reduce_after_a_broken_member");
            kill(this::sums, expected);
        }
    }

    private void job(String what, List<Row> expected, double cpuSeconds) {
        Map<String, Long> before = clocks();
        long begun = System.nanoTime();
        boolean equal = sums().equals(expected);
        double deviceSeconds = seconds(begun);
        long deviceNanos = 0;
        for (Map.Entry<String, Long> each : clocks().entrySet()) {
            deviceNanos = Math.max(deviceNanos, each.getValue() - before.getOrDefault(each.getKey(), 0L));
        }
        ClusterTotal total = ClusterFigures.ofProcess().total();
        tell(
                what,
                equal,
                ", \"rows\": %d, \"seconds\": %.3f, \"cpu_seconds\": %.3f, \"clock_nanos_of_the_slowest\": %d, "
                        + "\"spilled_bytes\": %d, \"retries\": %d, \"splits\": %d",
                Long.parseLong(size),
                deviceSeconds,
                cpuSeconds,
                deviceNanos,
                total.spilledBytes(),
                total.retries(),
                total.splits());
    }

    private Dataset<Row> sales() {
        return Sales.of(session, Long.parseLong(size), ARTICLES, 2 * executors);
    }

    private List<Row> sums() {
        return Sales.sumsOnDevice(sales(), 2 * executors, 64 << 10)
                .orderBy(col("key"))
                .collectAsList();
    }

    /// By executor, its driver's clock: virtual time on a simulated device.
    private Map<String, Long> clocks() {
        Map<String, Long> clocks = new HashMap<>();
        context()
                .parallelize(IntStream.range(0, 8 * executors).boxed().toList(), 8 * executors)
                .map(_ -> {
                    Thread.sleep(50);
                    return new Tuple2<>(
                            SparkEnv.get().executorId(),
                            TaskMemory.current().memory().driver().nanoTime());
                })
                .collect()
                .forEach(each -> clocks.merge(each._1(), each._2(), Math::max));
        return clocks;
    }

    private <R> void kill(Supplier<R> work, R expected) throws Exception {
        String victim = ClusterFigures.ofProcess().alive().getFirst().executorId();
        CompletableFuture<R> job;
        do {
            job = CompletableFuture.supplyAsync(work);
        } while (!killsDuring(job, victim));
        long begun = System.nanoTime();
        boolean equal = job.get(300, TimeUnit.SECONDS).equals(expected);
        tell("executor_killed", equal, ", \"seconds_to_the_end\": %.3f", seconds(begun));
    }

    /// Kills an executor as soon as it holds memory; not if the job ends before that is seen.
    private boolean killsDuring(CompletableFuture<?> job, String victim) throws InterruptedException {
        while (!job.isDone()) {
            if (ClusterFigures.ofProcess().alive().stream()
                    .anyMatch(each ->
                            each.executorId().equals(victim) && each.device().requestedBytes() > 0)) {
                cluster.kill(victim);
                return true;
            }
            Thread.sleep(5);
        }
        return false;
    }

    private void allReduce(String what) {
        long begun = System.nanoTime();
        List<Float> sums = reduced(false);
        float expected = executors * (executors + 1) / 2f;
        boolean right = sums.size() == executors && sums.stream().allMatch(sum -> sum == expected);
        tell(what, right, ", \"bytes\": %d, \"seconds\": %.3f", REDUCED_BYTES, seconds(begun));
    }

    private void brokenMember() {
        long begun = System.nanoTime();
        boolean ended = false;
        try {
            reduced(true);
        } catch (Exception failure) {
            ended = failure instanceof SparkException;
        }
        tell("broken_member", ended, ", \"seconds\": %.3f", seconds(begun));
    }

    private List<Float> reduced(boolean breaks) {
        JavaRDD<Integer> ranks =
                context().parallelize(IntStream.range(0, executors).boxed().toList(), executors);
        return BarrierStage.<Integer, Float>mapPartitions(ranks, (_, joined) -> {
                    if (breaks && joined.rank() == 1) {
                        throw new IllegalStateException("broken on purpose");
                    }
                    CudaStream stream = TaskMemory.current().stream();
                    try (DeviceBuffer buffer = DeviceBuffer.allocate(REDUCED_BYTES, stream)) {
                        buffer.elements(ValueLayout.JAVA_FLOAT).fill(joined.rank() + 1f);
                        joined.allReduce(buffer, DataType.FLOAT32, ReductionOp.SUM);
                        float[] sums = buffer.elements(ValueLayout.JAVA_FLOAT).toFloats();
                        return List.of(sums[sums.length - 1]).iterator();
                    }
                })
                .collect();
    }

    private void emptied() {
        boolean empty = Eventually.holds(() -> ClusterFigures.ofProcess().alive().stream()
                .allMatch(each ->
                        each.device().requestedBytes() == 0 && each.tasks().running() == 0));
        tell("nothing_allocated", empty, "");
    }

    private JavaSparkContext context() {
        return JavaSparkContext.fromSparkContext(session.sparkContext());
    }

    private static double seconds(long begun) {
        return (System.nanoTime() - begun) / 1e9;
    }

    private void tell(String what, boolean right, String more, Object... values) {
        isRight &= right;
        System.out.printf(
                Locale.ROOT,
                "{\"what\": \"%s\", \"driver\": \"%s\", \"executors\": %d, \"right\": %s" + more + "}%n",
                prepended(what, right, values));
    }

    private Object[] prepended(String what, boolean right, Object... values) {
        Object[] all = new Object[4 + values.length];
        all[0] = what;
        all[1] = driver;
        all[2] = executors;
        all[3] = right;
        System.arraycopy(values, 0, all, 4, values.length);
        return all;
    }
}
