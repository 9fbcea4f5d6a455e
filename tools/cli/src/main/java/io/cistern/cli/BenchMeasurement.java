package io.cistern.cli;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.catalog.Catalog;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/// Measures cases through one allocator, in this JVM:
///
/// 1. find out how many pairs make a round of the length asked for;
/// 2. go on until the JVM has compiled them, and its compilers are at rest;
/// 3. take the time of whole rounds, and what they took of the Java heap;
/// 4. in one more round, take the time of each pair alone, for the percentiles: this one pays for two looks at
///    the clock a pair, so it counts for nothing else.
///
/// Sizes are drawn from a fixed seed: two runs ask for the same.
final class BenchMeasurement {
    /// Up to [#WARM_UP_NANOS].
    private static final int WARM_UP_ROUNDS = 24;
    /// Pairs that often miss are as fast as they get after a second: beside JMH, less was seen to tell far
    /// more.
    private static final long WARM_UP_NANOS = 1_200_000_000;
    /// On a busy machine the compilers may be far behind, and pairs are slow: so many warm-ups at
    /// most, until they have had nothing to do for half of one.
    private static final int MAX_WARM_UPS = 5;
    /// A percentile of 99.9 has 200 pairs above it then, one of 99.99 has 20.
    private static final int MAX_TIMED_PAIRS = 200_000;
    private static final int CLOCK_LOOKS = 10_001;
    private static final long SEED = 20_260_101;

    private final ReplayDevice gpu;
    private final Catalog catalog;
    private final String spec;
    private final int rounds;
    private final long roundNanos;

    /// @param rounds how many rounds are timed
    /// @param roundNanos how long each lasts, about
    BenchMeasurement(ReplayDevice gpu, Catalog catalog, String spec, int rounds, long roundNanos) {
        this.gpu = gpu;
        this.catalog = catalog;
        this.spec = spec;
        this.rounds = rounds;
        this.roundNanos = roundNanos;
    }

    /// Measures one case, with device memory, allocator and threads of its own.
    BenchRow measure(BenchCase each) {
        CudaDriver driver = gpu.driver();
        int device = gpu.ordinal();
        long[] streams = LongStream.generate(() -> driver.streams().create(device))
                .limit(each.threads())
                .toArray();
        try (DeviceMemory memory = gpu.open(driver, catalog)) {
            memory.setCurrent(spec);
            double queueNanos = each.variant() == BenchCase.Variant.HANDOFF ? queueNanos(each) : Double.NaN;
            try (BenchTeam team = new BenchTeam(members(each, memory, streams))) {
                return measure(each, team, queueNanos);
            }
        } finally {
            for (long stream : streams) {
                driver.streams().destroy(device, stream);
            }
            gpu.release(driver);
        }
    }

    private BenchRow measure(BenchCase each, BenchTeam team, double queueNanos) {
        team.begin();
        int pairs = warmUp(team);
        double pairsARound = (double) pairs * each.pairMakers();
        List<Double> nanosPerPair = new ArrayList<>();
        long garbageBytes = 0;
        for (int i = 0; i < rounds; i++) {
            BenchTeam.Round round = team.run(pairs);
            nanosPerPair.add((double) round.nanos() / pairs);
            garbageBytes += round.garbageBytes();
        }
        long[] timed = team.time(Math.min(pairs, MAX_TIMED_PAIRS));
        team.end();
        return new BenchRow(
                each,
                nanosPerPair,
                BenchPercentiles.of(timed),
                clockNanos(),
                garbageBytes / (pairsARound * rounds),
                queueNanos,
                collector());
    }

    /// Warms up.
    ///
    /// @return how many pairs make a round
    private int warmUp(BenchTeam team) {
        long nanos = Math.min(roundNanos * WARM_UP_ROUNDS, WARM_UP_NANOS);
        int pairs = 64;
        for (long left = nanos; left > 0; ) {
            long taken = Math.max(1, team.run(pairs).nanos());
            left -= taken;
            pairs = taken < roundNanos / 4 ? Math.multiplyExact(2, pairs) : pairs;
        }
        runUntilCompiled(team, pairs, nanos);
        double wanted =
                (double) pairs * roundNanos / Math.max(1, team.run(pairs).nanos());
        return (int) Math.clamp(wanted, 16, 1 << 30);
    }

    private static void runUntilCompiled(BenchTeam team, int pairs, long warmUpNanos) {
        CompilationMXBean compilers = ManagementFactory.getCompilationMXBean();
        if (compilers == null || !compilers.isCompilationTimeMonitoringSupported()) {
            return;
        }
        long compiledMillis = compilers.getTotalCompilationTime();
        long quietNanos = 0;
        for (long left = (MAX_WARM_UPS - 1) * warmUpNanos; left > 0 && quietNanos < warmUpNanos / 2; ) {
            long taken = Math.max(1, team.run(pairs).nanos());
            long millis = compilers.getTotalCompilationTime();
            quietNanos = millis == compiledMillis ? quietNanos + taken : 0;
            compiledMillis = millis;
            left -= taken;
        }
    }

    private List<BenchTeam.Member> members(BenchCase each, DeviceMemory memory, long[] streams) {
        return switch (each.variant()) {
            case HANDOFF -> handoff(each, memory, streams[0]);
            case ONE_STREAM ->
                Arrays.stream(streams)
                        .mapToObj(stream -> member(each, memory, streams[0], stream))
                        .toList();
            case PAIR, EXCHANGE, OWN_STREAMS ->
                Arrays.stream(streams)
                        .mapToObj(stream -> member(each, memory, stream, stream))
                        .toList();
        };
    }

    private BenchTeam.Member member(BenchCase each, DeviceMemory memory, long stream, long seed) {
        BenchSizes sizes = each.variant() == BenchCase.Variant.EXCHANGE
                ? BenchSizes.ofAllMagnitudes(each.byteSize(), SEED + seed)
                : BenchSizes.upperHalf(each.byteSize(), SEED + seed);
        BenchLoad load = each.variant() == BenchCase.Variant.EXCHANGE
                ? new BenchExchanges(memory, gpu.ordinal(), stream, sizes, each.liveBlocks())
                : new BenchPairs(memory, gpu.ordinal(), stream, sizes, each.liveBlocks());
        return new BenchTeam.Member(load, awaiting(memory, stream));
    }

    private List<BenchTeam.Member> handoff(BenchCase each, DeviceMemory memory, long stream) {
        BenchHandoff handoff = new BenchHandoff();
        BenchSizes sizes = BenchSizes.upperHalf(each.byteSize(), SEED);
        return Stream.of(handoff.producer(memory, gpu.ordinal(), stream, sizes), handoff.consumer(memory, stream))
                .map(load -> new BenchTeam.Member(load, awaiting(memory, stream)))
                .toList();
    }

    /// What the queue of a hand-off costs by itself.
    private double queueNanos(BenchCase each) {
        BenchHandoff handoff = new BenchHandoff();
        BenchSizes sizes = BenchSizes.upperHalf(each.byteSize(), SEED);
        try (BenchTeam team = new BenchTeam(Stream.of(handoff.putter(sizes), handoff.taker())
                .map(load -> new BenchTeam.Member(load, () -> {}))
                .toList())) {
            int pairs = warmUp(team);
            double[] nanos = new double[rounds];
            Arrays.setAll(nanos, _ -> (double) team.run(pairs).nanos() / pairs);
            return BenchResult.median(Arrays.stream(nanos).boxed().toList());
        }
    }

    private Runnable awaiting(DeviceMemory memory, long stream) {
        return () -> memory.driver().streams().synchronize(gpu.ordinal(), stream);
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
