package io.cistern.cli.bench;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/// Measures cases through one allocator by JMH, in JVMs with the Java, modules, class path and options of this
/// one. Separate JVMs keep code that was compiled for one allocator away from the others.
///
/// The percentiles come from further JVMs, because timing each pair alone reads the clock twice per pair.
///
/// @param spec the allocator
/// @param device the device as `--device` names it
/// @param rounds how many rounds are timed in each JVM
/// @param roundMillis milliseconds of each round
/// @param forks how many JVMs measure each case
record BenchRun(String spec, String device, int rounds, int roundMillis, int forks) {
    /// Options that belong to this JVM alone: its debugger's port, its ahead-of-time cache, its main module.
    private static final List<String> OWN_OPTIONS =
            List.of("-agentlib:", "-javaagent:", "-XX:AOT", "-Xlog:aot", "-Xlog:cds", "-Djdk.module.", "-Dsurefire");

    /// Pairs that often miss the cache need this long until the JIT compiler has compiled their code.
    private static final int WARM_UP_MILLIS = 1_800;

    private static final int WARM_UP_ROUNDS = 36;
    private static final int WARM_UPS = 4;
    private static final int CLOCK_LOOKS = 10_001;

    static {
        System.setProperty("jmh.ignoreLock", "true"); // Runs of other users need not exclude this one.
    }

    /// Measures one case.
    ///
    /// @throws BenchFailure if the case failed in its JVM
    BenchResult measure(BenchCase each) throws BenchFailure {
        boolean handoff = each.variant() == BenchCase.Variant.HANDOFF;
        String load = handoff ? "handoff" : each.variant() == BenchCase.Variant.EXCHANGE ? "exchange" : "pair";
        RunResult means = means(each, load);
        Statistics single = run(each, load, Mode.SampleTime, 1, rounds * roundMillis)
                .getPrimaryResult()
                .getStatistics();
        return new BenchResult(
                each,
                spec,
                device,
                forks,
                scores(means),
                BenchResult.PERCENTILES.stream().map(single::getPercentile).toList(),
                clockNanos(),
                garbageBytes(means) / (pairsInRounds(scores(means)) * each.pairMakers()),
                handoff ? BenchResult.median(scores(means(each, "queue"))) : Double.NaN,
                collector());
    }

    private RunResult means(BenchCase each, String load) throws BenchFailure {
        return run(each, load, Mode.AverageTime, rounds, roundMillis);
    }

    private RunResult run(BenchCase each, String load, Mode mode, int iterations, int millis) throws BenchFailure {
        ChainedOptionsBuilder options = new OptionsBuilder()
                .include("^" + Pattern.quote(BenchLoads.class.getName() + "." + load) + "$")
                .mode(mode)
                .forks(forks)
                .threads(each.threads())
                .warmupIterations(WARM_UPS)
                .warmupTime(TimeValue.milliseconds(Math.max(1, warmUpMillis() / WARM_UPS)))
                .measurementIterations(iterations)
                .measurementTime(TimeValue.milliseconds(millis))
                .shouldFailOnError(true)
                .param("allocator", spec)
                .param("device", device)
                .param("oneStream", String.valueOf(each.variant() == BenchCase.Variant.ONE_STREAM))
                .param("allMagnitudes", String.valueOf(each.variant() == BenchCase.Variant.EXCHANGE))
                .param("byteSize", String.valueOf(each.byteSize()))
                .param("liveBlocks", String.valueOf(each.liveBlocks()))
                .jvmArgs(jvmOptions());
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(told, true, StandardCharsets.UTF_8);
        try {
            return new Runner(options.build(), OutputFormatFactory.createFormatInstance(out, VerboseMode.NORMAL))
                    .runSingle();
        } catch (RunnerException e) {
            throw BenchFailure.of(
                    e, each.scenario().label() + " through " + spec, told.toString(StandardCharsets.UTF_8));
        }
    }

    private int warmUpMillis() {
        return Math.min(WARM_UP_ROUNDS * roundMillis, WARM_UP_MILLIS);
    }

    /// Returns this JVM's own options with two additions. The module makes a JVM on a module path find JMH's
    /// main class. `-Xbatch` makes threads wait while their code is compiled: rare paths are compiled when the
    /// warm-up ends, and no round waits for the compiler.
    private static String[] jvmOptions() {
        List<String> options =
                new ArrayList<>(ManagementFactory.getRuntimeMXBean().getInputArguments());
        options.removeIf(option -> OWN_OPTIONS.stream().anyMatch(option::startsWith));
        options.add("-Xbatch");
        if (BenchRun.class.getModule().isNamed()) {
            options.add("--add-modules=" + BenchRun.class.getModule().getName());
        }
        return options.toArray(String[]::new);
    }

    /// Returns the scores of all rounds in all JVMs.
    private static List<Double> scores(RunResult result) {
        return result.getBenchmarkResults().stream()
                .flatMap(jvm -> jvm.getIterationResults().stream())
                .map(IterationResult::getPrimaryResult)
                .map(round -> round.getScore())
                .toList();
    }

    private static double garbageBytes(RunResult result) {
        return result.getBenchmarkResults().stream()
                .flatMap(jvm -> jvm.getIterationResults().stream())
                .mapToDouble(round -> Objects.requireNonNull(
                                round.getSecondaryResults().get("garbageBytes"))
                        .getScore())
                .sum();
    }

    /// Returns how many pairs one thread made in all rounds.
    private double pairsInRounds(List<Double> nanosPerPair) {
        double roundNanos = TimeUnit.MILLISECONDS.toNanos(roundMillis);
        return nanosPerPair.stream().mapToDouble(nanos -> roundNanos / nanos).sum();
    }

    /// Returns the median cost of reading the clock, in nanoseconds.
    private static long clockNanos() {
        long[] looks = new long[CLOCK_LOOKS];
        for (int i = 0; i < looks.length; i++) {
            long begin = System.nanoTime();
            looks[i] = System.nanoTime() - begin;
        }
        Arrays.sort(looks);
        return looks[looks.length / 2];
    }

    /// Returns the garbage collector's name; its barriers are part of the measured cost.
    private static String collector() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .map(collector -> collector.getName().split(" ", -1)[0])
                .distinct()
                .collect(Collectors.joining(","));
    }
}
