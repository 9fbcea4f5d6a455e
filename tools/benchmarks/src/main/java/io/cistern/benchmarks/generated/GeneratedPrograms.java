package io.cistern.benchmarks.generated;

import io.cistern.benchmarks.Json;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.Work;
import io.cistern.cli.replay.Replay;
import io.cistern.cli.replay.ReplaySession;
import io.cistern.cli.replay.Routing;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;

/// Measures allocators on generated programs on the simulated GPU: reserved over requested bytes, and whether they come
/// to rest. **Seeds 1 to 99 are for work, 1001 on are for judging**: a change that was made while looking at some
/// programs has to be judged on others.
///
/// Arguments: the seeds as `FIRST..LAST`, then specs. Prints a line for each family and spec, then one for each spec
/// over all families: the geometric mean and the worst of reserved over requested, with the seed of the
/// worst; the mean of driver calls in the first pass, and in a pass from the third on; and how many programs
/// are not steady, that is, call the driver in some pass from the third on. Seeds draw programs for devices
/// of 1 to 16 GiB.
///
/// ```
/// tools/benchmarks/java io.cistern.benchmarks.generated.GeneratedPrograms 1..20 caching caching:fit=tight
/// ```
public final class GeneratedPrograms {
    private static final int PASSES = 6;
    private static final int FIRST_PASSES = 2;
    private static final int CAPACITIES = 5;

    /// The outcome of one replay.
    ///
    /// @param calls the allocator's driver calls in each pass
    private record Result(long seed, double ratio, List<Long> calls) {
        double laterCalls() {
            return calls.subList(FIRST_PASSES, PASSES).stream()
                    .mapToLong(Long::longValue)
                    .average()
                    .orElseThrow();
        }
    }

    private GeneratedPrograms() {}

    /// Replays all programs.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        String[] seeds = arguments[0].split("\\.\\.", -1);
        Map<String, List<Result>> bySpec = new TreeMap<>();
        for (GeneratedTrace family : EnumSet.range(GeneratedTrace.PHASES, GeneratedTrace.IMAGES)) {
            Map<String, List<Result>> ofFamily = new TreeMap<>();
            for (long seed = Long.parseLong(seeds[0]); seed <= Long.parseLong(seeds[1]); seed++) {
                Trace program = family.build(seed, 1L << (30 + seed % CAPACITIES));
                for (String spec : List.of(arguments).subList(1, arguments.length)) {
                    ofFamily.computeIfAbsent(spec, _ -> new ArrayList<>()).add(replay(program, seed, spec));
                }
            }
            ofFamily.forEach((spec, results) -> {
                print(family.label(), spec, results);
                bySpec.computeIfAbsent(spec, _ -> new ArrayList<>()).addAll(results);
            });
        }
        bySpec.forEach((spec, results) -> print("all", spec, results));
    }

    private static Result replay(Trace program, long seed, String spec) {
        ReplaySession.Outcome outcome = replay(program, spec, PASSES, new ReplayDevice.Simulated(OptionalLong.empty()));
        return new Result(
                seed,
                ratio(outcome),
                outcome.passes().stream().map(Replay.Pass::driverCalls).toList());
    }

    /// Replays a trace; a request that is refused ends the replay.
    static ReplaySession.Outcome replay(Trace trace, String spec, int passes, ReplayDevice gpu) {
        return new ReplaySession(
                        trace,
                        spec,
                        Routing.Plan.ONE_ALLOCATOR,
                        gpu,
                        Plugins.catalog(),
                        passes,
                        () -> {},
                        GeneratedPrograms::fail,
                        null,
                        null)
                .observed(Work.NONE);
    }

    private static boolean fail(int row, DeviceOutOfMemoryException refusal) {
        throw refusal;
    }

    static double ratio(ReplaySession.Outcome outcome) {
        return (double) outcome.reservedPeakBytes().orElseThrow()
                / outcome.metered().requestedPeakBytes();
    }

    private static void print(String family, String spec, List<Result> results) {
        Result worst =
                results.stream().max(Comparator.comparingDouble(Result::ratio)).orElseThrow();
        Json.print(
                "allocator", spec,
                "family", family,
                "programs", results.size(),
                "meanRatio", Json.rounded(Math.exp(mean(results, result -> Math.log(result.ratio()))), 4),
                "worstRatio", Json.rounded(worst.ratio(), 4),
                "worstSeed", worst.seed(),
                "firstPassCalls",
                        Json.rounded(mean(results, result -> result.calls().getFirst()), 1),
                "laterPassCalls", Json.rounded(mean(results, Result::laterCalls), 1),
                "notAtRest",
                        results.stream()
                                .filter(result -> result.laterCalls() > 0)
                                .count());
    }

    private static double mean(List<Result> results, ToDoubleFunction<Result> figure) {
        return results.stream().mapToDouble(figure).average().orElseThrow();
    }
}
