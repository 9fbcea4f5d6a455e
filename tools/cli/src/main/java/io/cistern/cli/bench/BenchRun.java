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

/// Lets JMH measure cases through one allocator, in JVMs of their own, like this one: the same Java, modules,
/// class path and options. So no allocator meets code that was compiled for another one.
///
/// The percentiles come from further JVMs, since timing pairs one by one costs two looks at the clock each.
///
/// @param spec the allocator
/// @param device where
/// @param rounds how many rounds are timed in each JVM
/// @param roundMillis how long each lasts
/// @param forks how many JVMs measure each case
record BenchRun(String spec, String device, int rounds, int roundMillis, int forks) {
    /// Options that are this JVM's alone: a debugger's port, what it recorded of an earlier run, its main module.
    private static final List<String> OWN_OPTIONS =
            List.of("-agentlib:", "-javaagent:", "-XX:AOT", "-Xlog:aot", "-Xlog:cds", "-Djdk.module.", "-Dsurefire");

    /// Pairs that often miss are as fast as they get after a second or two.
    private static final int WARM_UP_MILLIS = 1_800;

    private static final int WARM_UP_ROUNDS = 36;
    private static final int WARM_UPS = 4;
    private static final int CLOCK_LOOKS = 10_001;

    static {
        System.setProperty("jmh.ignoreLock", "true"); // Other users' runs are none of this one's business.
    }

    /// Measures one case.
    ///
    /// @throws BenchFailure if it failed in its JVM
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

    /// On a module path, JMH's main class is found there as well. Threads wait while their code is compiled, so that
    /// the code of rare ways is compiled when the warm-up ends, and no round waits for a compiler.
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

    /// Of each round of each JVM.
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

    /// Of one thread.
    private double pairsInRounds(List<Double> nanosPerPair) {
        double roundNanos = TimeUnit.MILLISECONDS.toNanos(roundMillis);
        return nanosPerPair.stream().mapToDouble(nanos -> roundNanos / nanos).sum();
    }

    /// What a look at the clock costs.
    private static long clockNanos() {
        long[] looks = new long[CLOCK_LOOKS];
        for (int i = 0; i < looks.length; i++) {
            long begin = System.nanoTime();
            looks[i] = System.nanoTime() - begin;
        }
        Arrays.sort(looks);
        return looks[looks.length / 2];
    }

    /// Which garbage collector runs: its barriers are part of what is measured.
    private static String collector() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .map(collector -> collector.getName().split(" ", -1)[0])
                .distinct()
                .collect(Collectors.joining(","));
    }
}
