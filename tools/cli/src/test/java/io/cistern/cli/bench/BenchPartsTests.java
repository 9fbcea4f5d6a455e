package io.cistern.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.ResultWriter;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.openjdk.jmh.infra.Control;

/// The parts of `cistern bench`: sizes, queue, figures.
final class BenchPartsTests {
    private static final long MAX_BYTES = 64 << 10;

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
        BenchLoads.Ring queue = new BenchLoads.Ring();
        Control control = new Control();
        try (ExecutorService putter = Executors.newSingleThreadExecutor()) {
            Future<?> putting =
                    putter.submit(() -> IntStream.range(0, count).forEach(i -> queue.put(i, i + 1, control)));
            long[] taken = IntStream.range(0, count)
                    .mapToLong(i -> queue.take(i, control))
                    .toArray();
            assertThat(taken).isEqualTo(LongStream.rangeClosed(1, count).toArray());
            putting.get();
        }
    }

    @Test
    void figuresAreMediansOverAllRoundsOfAllJvms() {
        BenchResult result = result(2, List.of(20.0, 30.0, 10.0, 25.0, 90.0));

        assertThat(result.nanosPerPair()).isEqualTo(25);
        assertThat(result.pairsPerSecond()).as("of two threads").isEqualTo(80e6);
        assertThat(ResultWriter.line(result.fields()))
                .contains("\"lowestNanosPerPair\":10.0,\"highestNanosPerPair\":90.0,\"rounds\":5,\"forks\":2");
    }

    @Test
    void oneRoundIsNotCalledRounds() {
        assertThat(table(List.of(20.0))).contains("On a simulated GPU, 1 round in a JVM");
        assertThat(table(List.of(20.0, 30.0))).contains("On a simulated GPU, 2 rounds in a JVM");
    }

    private static String table(List<Double> nanosPerPair) {
        return BenchTable.format(List.of(result(1, nanosPerPair)));
    }

    @Test
    void percentilesHaveFieldsOfTheirNumbers() {
        assertThat(ResultWriter.line(result(1, List.of(1.0)).fields()))
                .contains(
                        "\"p50Nanos\":5.",
                        "\"p90Nanos\":9.",
                        "\"p99Nanos\":99.",
                        "\"p999Nanos\":999.",
                        "\"p9999Nanos\":1000.");
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

    private static BenchResult result(int forks, List<Double> rounds) {
        BenchCase two = new BenchCase(BenchScenario.THREADS, BenchCase.Variant.OWN_STREAMS, 2, 4096, 0);
        return new BenchResult(
                two,
                "caching",
                "simulated",
                forks,
                rounds,
                List.of(5.0, 9.0, 99.0, 999.0, 1000.0),
                22,
                4,
                Double.NaN,
                "G1");
    }
}
