package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The parts of `cistern bench`: sizes, queue, rows, figures.
final class BenchPartsTests {
    private static final long MAX_BYTES = 64 << 10;
    private static final long[] TAKEN = LongStream.rangeClosed(1, 10_000).toArray();

    @Test
    void sizesAreAnyNumbersOverHalfOfTheLargestWhichIsAmongThem() {
        BenchSizes sizes = BenchSizes.upperHalf(MAX_BYTES, 1);
        List<Long> drawn = draw(sizes);

        assertThat(drawn).allMatch(size -> size > MAX_BYTES / 2 && size <= MAX_BYTES);
        assertThat(Collections.max(drawn)).isEqualTo(MAX_BYTES);
        assertThat(drawn.stream().filter(size -> size % 2 == 1).count()).isBetween(900L, 1150L);
    }

    @Test
    void sizesOfAllMagnitudesReachFromOneByte() {
        BenchSizes sizes = BenchSizes.ofAllMagnitudes(MAX_BYTES, 1);
        List<Long> drawn = draw(sizes);

        assertThat(drawn).allMatch(size -> size >= 1 && size <= MAX_BYTES);
        for (long magnitude = 1; magnitude < MAX_BYTES; magnitude *= 4) {
            long least = magnitude;
            assertThat(drawn).as("from %d", least).anyMatch(size -> size >= least && size < 4 * least);
        }
    }

    @Test
    void theQueueHandsAllNumbersOverInTheirOrder() throws Exception {
        int count = 100_000; // Many laps.
        BenchQueue queue = new BenchQueue();
        try (ExecutorService putter = Executors.newSingleThreadExecutor()) {
            Future<?> putting = putter.submit(() -> IntStream.range(0, count).forEach(i -> queue.put(i, i + 1)));
            long[] taken = LongStream.range(0, count).map(queue::take).toArray();
            assertThat(taken).isEqualTo(LongStream.rangeClosed(1, count).toArray());
            putting.get();
        }
    }

    @Test
    void aThreadThatFailsEndsTheRoundThoughAnotherWaitsForIt() {
        BenchHandoff handoff = new BenchHandoff();
        BenchLoad failing = load(pairs -> {
            throw new IllegalStateException("refused");
        });
        BenchTeam.Member waiting = new BenchTeam.Member(handoff.taker(), () -> {});
        try (BenchTeam team = new BenchTeam(List.of(waiting, new BenchTeam.Member(failing, () -> {})))) {
            assertThatThrownBy(() -> team.run(10)).hasMessage("refused");
        } finally {
            handoff.putter(BenchSizes.upperHalf(8, 1)).run(10); // Lets the waiting thread end.
        }
    }

    @Test
    @Timeout(60)
    void aThreadThatIsDoneGoesOnWhileOthersAreAtIt() {
        AtomicLong made = new AtomicLong();
        BenchLoad quick = load(made::addAndGet);
        BenchLoad slow = load(pairs -> {
            while (made.get() <= 10) {
                Thread.onSpinWait();
            }
        });
        try (BenchTeam team =
                new BenchTeam(List.of(new BenchTeam.Member(quick, () -> {}), new BenchTeam.Member(slow, () -> {})))) {
            team.run(10);
        }
        assertThat(made).hasValueGreaterThan(10);
    }

    @Test
    void whatWaitsForAStreamIsNoPartOfARound() {
        long waitNanos = 200_000_000;
        AtomicLong waitedNanos = new AtomicLong();
        Runnable waits = () -> {
            long begin = System.nanoTime();
            LockSupport.parkNanos(waitNanos);
            waitedNanos.addAndGet(System.nanoTime() - begin);
        };
        try (BenchTeam team = new BenchTeam(List.of(new BenchTeam.Member(load(pairs -> {}), waits)))) {
            long begin = System.nanoTime();
            long nanos = team.run(10).nanos();
            assertThat(nanos).isLessThanOrEqualTo(System.nanoTime() - begin - waitedNanos.get());
        }
    }

    private static BenchLoad load(IntConsumer run) {
        return new BenchLoad() {
            @Override
            public void run(int pairs) {
                run.accept(pairs);
            }

            @Override
            public void time(long[] nanos) {}
        };
    }

    @Test
    void aRowSurvivesItsWayToTheOtherJvm() {
        BenchRow row = row(List.of(20.5, 19.25, 1e9), 12.5);

        assertThat(BenchRow.isRow(row.toLine())).isTrue();
        assertThat(BenchRow.parse(row.toLine())).isEqualTo(row);
        assertThat(BenchRow.isRow("acme opens")).isFalse();
    }

    @Test
    void figuresAreMediansOverAllRoundsOfAllJvms() {
        BenchResult result = new BenchResult(
                "caching", "simulated", List.of(row(List.of(20.0, 30.0), 4), row(List.of(10.0, 25.0, 90.0), 8)));

        assertThat(result.nanosPerPair()).isEqualTo(25);
        assertThat(result.garbageBytesPerPair()).isEqualTo(6);
        assertThat(result.pairsPerSecond()).as("of two threads").isEqualTo(80e6);
        assertThat(result.toJson())
                .contains("\"lowestNanosPerPair\":10.000,\"highestNanosPerPair\":90.000,\"rounds\":5,\"forks\":2");
    }

    @Test
    void oneRoundIsNotCalledRounds() {
        assertThat(table(List.of(20.0))).contains("On a simulated GPU, 1 round in a JVM");
        assertThat(table(List.of(20.0, 30.0))).contains("On a simulated GPU, 2 rounds in a JVM");
    }

    private static String table(List<Double> nanosPerPair) {
        return BenchTable.format(List.of(new BenchResult("caching", "simulated", List.of(row(nanosPerPair, 4)))));
    }

    @Test
    void percentilesAreExceededByAsManyPairsAsTheySay() {
        assertThat(BenchPercentiles.of(TAKEN).nanos()).containsExactly(5001.0, 9001.0, 9901.0, 9991.0, 10_000.0);
        assertThat(BenchPercentiles.PERCENTILES.stream().map(BenchPercentiles::field))
                .containsExactly("p50Nanos", "p90Nanos", "p99Nanos", "p999Nanos", "p9999Nanos");
    }

    @ParameterizedTest
    @EnumSource
    void noCaseWantsMoreThreadsThanThereAreButAHandoff(BenchScenario scenario) {
        for (int processors : new int[] {1, 2, 6, 64}) {
            assertThat(scenario.cases(processors)).isNotEmpty().allSatisfy(each -> {
                assertThat(each.scenario()).isEqualTo(scenario);
                assertThat(each.threads()).isLessThanOrEqualTo(Math.max(processors, each.pairMakers() == 1 ? 2 : 1));
            });
        }
    }

    private static List<Long> draw(BenchSizes sizes) {
        return LongStream.generate(sizes::next).limit(2048).boxed().toList();
    }

    private static BenchRow row(List<Double> nanosPerPair, double garbageBytesPerPair) {
        BenchCase two = new BenchCase(BenchScenario.THREADS, BenchCase.Variant.OWN_STREAMS, 2, 4096, 0);
        return new BenchRow(two, nanosPerPair, BenchPercentiles.of(TAKEN), 22, garbageBytesPerPair, Double.NaN, "G1");
    }
}
