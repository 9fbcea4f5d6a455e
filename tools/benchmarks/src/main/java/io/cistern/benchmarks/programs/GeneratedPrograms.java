package io.cistern.benchmarks.programs;

import io.cistern.cli.generated.GeneratedTrace;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;

/// Measures allocators on generated programs on the simulated GPU: reserved over requested bytes, and whether
/// they come to rest. **Seeds 1 to 99 are for work, 1001 on are for judging**: a change that was made while
/// looking at some programs has to be judged on others.
///
/// Arguments: the seeds as `FIRST..LAST`, then specs. Prints a line of JSON for each family and spec, then one
/// for each spec over all families. A line has the geometric mean and the worst of reserved over requested,
/// with the seed of the worst; the mean of driver calls in the first pass, and in a pass from the third on; how
/// many programs are not at rest, that is, call the driver in some pass from the third on; and how many of these
/// still map pages there. The others record how far a stream has got, or ask. Seeds draw programs for devices of
/// 1 to 16 GiB.
///
/// ```
/// tools/benchmarks/java io.cistern.benchmarks.programs.GeneratedPrograms 1..20 caching caching:fit=tight
/// ```
public final class GeneratedPrograms {
    private static final int PASSES = 6;
    private static final int FIRST_PASSES = 2;
    private static final int CAPACITIES = 5;

    /// The result of one replay.
    private record Result(long seed, double ratio, List<ProgramReplay.Calls> passes) {
        private List<ProgramReplay.Calls> later() {
            return passes.subList(FIRST_PASSES, PASSES);
        }

        double laterCalls() {
            return later().stream()
                    .mapToLong(ProgramReplay.Calls::all)
                    .average()
                    .orElseThrow();
        }

        boolean isMapping() {
            return later().stream().anyMatch(calls -> calls.maps() > 0);
        }
    }

    private GeneratedPrograms() {}

    /// Replays all programs.
    ///
    /// @param arguments as above
    public static void main(String[] arguments) {
        String[] seeds = arguments[0].split("\\.\\.", -1);
        long first = Long.parseLong(seeds[0]);
        long last = Long.parseLong(seeds[1]);
        Map<String, List<Result>> bySpec = new TreeMap<>();
        for (GeneratedTrace family : EnumSet.range(GeneratedTrace.PHASES, GeneratedTrace.IMAGES)) {
            Map<String, List<Result>> ofFamily = new TreeMap<>();
            for (long seed = first; seed <= last; seed++) {
                GeneratedProgram program = GeneratedProgram.of(family, seed, capacityBytes(seed));
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

    private static long capacityBytes(long seed) {
        return 1L << (30 + seed % CAPACITIES);
    }

    private static Result replay(GeneratedProgram program, long seed, String spec) {
        ProgramReplay.Outcome outcome = ProgramReplay.of(program, spec, PASSES);
        return new Result(seed, (double) outcome.reservedPeakBytes() / program.peakBytes(), outcome.passes());
    }

    private static void print(String family, String spec, List<Result> results) {
        Result worst =
                results.stream().max(Comparator.comparingDouble(Result::ratio)).orElseThrow();
        System.out.printf(
                Locale.ROOT,
                "{\"allocator\":\"%s\",\"family\":\"%s\",\"programs\":%d,\"meanRatio\":%.4f,\"worstRatio\":%.4f,"
                        + "\"worstSeed\":%d,\"firstPassCalls\":%.1f,\"laterPassCalls\":%.1f,\"notAtRest\":%d,"
                        + "\"mapping\":%d}%n",
                spec,
                family,
                results.size(),
                Math.exp(mean(results, result -> Math.log(result.ratio()))),
                worst.ratio(),
                worst.seed(),
                mean(results, result -> result.passes().getFirst().all()),
                mean(results, Result::laterCalls),
                results.stream().filter(result -> result.laterCalls() > 0).count(),
                results.stream().filter(Result::isMapping).count());
    }

    private static double mean(List<Result> results, ToDoubleFunction<Result> figure) {
        return results.stream().mapToDouble(figure).average().orElseThrow();
    }
}
