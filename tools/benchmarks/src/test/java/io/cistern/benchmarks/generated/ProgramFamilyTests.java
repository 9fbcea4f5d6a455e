package io.cistern.benchmarks.generated;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.benchmarks.generated.Recording.Life;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Generated programs: each family has the feature that it is named for, whatever the seed draws.
final class ProgramFamilyTests {
    private static final long CAPACITY_BYTES = 4L << 30;
    private static final int SEEDS = 12;

    static Stream<GeneratedTrace> families() {
        return EnumSet.range(GeneratedTrace.TRAINING, GeneratedTrace.IMAGES).stream();
    }

    static LongStream seeds() {
        return LongStream.rangeClosed(1, SEEDS);
    }

    @ParameterizedTest
    @MethodSource("families")
    void aSeedGivesTheSameRowsAgainAndAnotherOneOthers(GeneratedTrace family) {
        List<String> rows = Recording.of(family, 3, CAPACITY_BYTES).rows();

        assertThat(Recording.of(family, 3, CAPACITY_BYTES).rows()).isEqualTo(rows);
        assertThat(Recording.of(family, 4, CAPACITY_BYTES).rows()).isNotEqualTo(rows);
    }

    @ParameterizedTest
    @MethodSource("families")
    void freesWhatItAllocatesWithinTheDeviceAndAReplaysTime(GeneratedTrace family) {
        for (long capacityBytes : new long[] {GeneratedTrace.MIN_CAPACITY_BYTES, CAPACITY_BYTES}) {
            for (long seed = 1; seed <= SEEDS; seed++) {
                Recording program = Recording.of(family, seed, capacityBytes);
                assertThat(program.liveBlocks()).isZero();
                assertThat(program.peakBytes()).isBetween(capacityBytes / 20, capacityBytes / 100 * 95);
                assertThat(program.rows()).hasSizeBetween(10_000, 60_000);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void trainingHasStepsOfDifferentShapes(long seed) {
        assertThat(Recording.of(GeneratedTrace.TRAINING, seed, CAPACITY_BYTES).sizes())
                .isGreaterThan(50);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void aBackwardPassFreesActivationsInReverse(long seed) {
        Program program = new Program(seed, CAPACITY_BYTES);
        Trainee trainee = trainee(program);
        List<Block> kept = trainee.forward(4);
        String[] frees = kept.reversed().stream()
                .map(block -> "f" + block.id() + " " + Program.MAIN_STREAM)
                .toArray(String[]::new);
        int forwardRows = program.rows();
        trainee.backward(kept);

        assertThat(frees).hasSizeGreaterThan(10);
        assertThat(Recording.of(program.csv()).rows().subList(forwardRows, program.rows()))
                .containsSubsequence(frees);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void aSecondBackwardPassAddsToTheGradientsUntilAStep(long seed) {
        Trainee trainee = trainee(new Program(seed, CAPACITY_BYTES));
        trainee.backward(trainee.forward(2));
        List<Block> made = List.copyOf(trainee.gradients());
        trainee.backward(trainee.forward(3));

        assertThat(made).isNotEmpty();
        assertThat(trainee.gradients()).isEqualTo(made);
        trainee.step();
        assertThat(trainee.gradients()).isEmpty();
    }

    private static Trainee trainee(Program program) {
        return new Trainee(program, Network.any(program, CAPACITY_BYTES / 50), Program.MAIN_STREAM);
    }

    /// Of what does not stay to the end, a gradient lives longest: it has the size of a weight.
    @ParameterizedTest
    @MethodSource("seeds")
    void accumulationHasGradientsThatOutliveActivations(long seed) {
        Recording program = Recording.of(GeneratedTrace.ACCUMULATION, seed, CAPACITY_BYTES);
        int rows = program.rows().size();
        int lastAllocation = program.lives().stream().mapToInt(Life::from).max().orElseThrow();
        Life longest = program.lives().stream()
                .filter(life -> life.to() < lastAllocation)
                .max(Comparator.comparingInt(Life::length))
                .orElseThrow();

        assertThat(program.lives())
                .anyMatch(life -> life.length() > rows * 9 / 10 && life.byteSize() == longest.byteSize());
    }

    @ParameterizedTest
    @ValueSource(strings = {"TRAINING", "ACCUMULATION", "GENERATION", "SERVING", "GRAPHS"})
    void modelsHaveWeightsThatLiveAllAlong(GeneratedTrace family) {
        for (long seed = 1; seed <= SEEDS; seed++) {
            Recording program = Recording.of(family, seed, CAPACITY_BYTES);
            int rows = program.rows().size();
            assertThat(program.lives().stream().filter(life -> life.length() > rows * 9 / 10))
                    .hasSizeGreaterThan(20);
        }
    }

    /// The next block is allocated, a little larger, in the row before a cache is freed.
    @ParameterizedTest
    @MethodSource("seeds")
    void generationGrowsItsCachesByCopying(long seed) {
        Recording program = Recording.of(GeneratedTrace.GENERATION, seed, CAPACITY_BYTES);
        Map<Integer, Life> byFirstRow =
                program.lives().stream().collect(Collectors.toMap(Life::from, Function.identity()));
        long grown = program.lives().stream()
                .filter(life -> life.byteSize() > 1 << 20 && byFirstRow.containsKey(life.to() - 1))
                .filter(life -> byFirstRow.get(life.to() - 1).byteSize() > life.byteSize())
                .count();

        assertThat(grown).isGreaterThan(500);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void servingHasRequestsThatOverlap(long seed) {
        Recording program = Recording.of(GeneratedTrace.SERVING, seed, CAPACITY_BYTES);
        long cacheBlockBytes = mostFrequentSizeOf(program, life -> life.length() > 200);
        List<Life> caches = program.lives().stream()
                .filter(life -> life.byteSize() == cacheBlockBytes)
                .toList();

        assertThat(caches).hasSizeGreaterThan(100);
        assertThat(overlapsWithoutNesting(caches)).isGreaterThan(50);
    }

    private static long mostFrequentSizeOf(Recording program, Predicate<Life> which) {
        return program.lives().stream()
                .filter(which)
                .collect(Collectors.groupingBy(Life::byteSize, Collectors.counting()))
                .entrySet()
                .stream()
                .max(Map.Entry.comparingByValue())
                .orElseThrow()
                .getKey();
    }

    /// Pairs of which the later one is freed later too: what a stack never has.
    private static long overlapsWithoutNesting(List<Life> lives) {
        long overlaps = 0;
        for (int i = 0; i + 50 < lives.size(); i += 50) {
            Life one = lives.get(i);
            overlaps += lives.stream()
                    .filter(other -> one.from() < other.from() && other.from() < one.to() && one.to() < other.to())
                    .count();
        }
        return overlaps;
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void graphsKeepMemoryOfTheStreamThatCapturedThem(long seed) {
        Recording program = Recording.of(GeneratedTrace.GRAPHS, seed, CAPACITY_BYTES);
        List<Life> kept =
                program.lives().stream().filter(life -> life.stream() == 2).toList();

        assertThat(kept).hasSizeGreaterThan(8);
        assertThat(kept).allSatisfy(life -> assertThat(life.length()).isGreaterThan(20));
        assertThat(program.blocksUsedElsewhere()).isEqualTo(kept.size());
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void streamsAreSeveralThatHandBlocksToEachOther(long seed) {
        Recording program = Recording.of(GeneratedTrace.STREAMS, seed, CAPACITY_BYTES);

        assertThat(program.streams()).isBetween(4L, 6L);
        assertThat(program.blocksUsedElsewhere()).isGreaterThan(20);
        assertThat(program.rows()).contains("w1 2", "w1 3", "w3 1", "w4 1", "w1 4");
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void columnsBelongToTasksThatRunAtOnce(long seed) {
        Recording program = Recording.of(GeneratedTrace.COLUMNS, seed, CAPACITY_BYTES);

        assertThat(program.streams()).isBetween(2L, 6L);
        assertThat(program.sizes()).isGreaterThan(1_000);
        assertThat(overlapsWithoutNesting(program.lives())).isGreaterThan(50);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void imagesHaveAllSizesAndPreviewsStay(long seed) {
        Recording program = Recording.of(GeneratedTrace.IMAGES, seed, CAPACITY_BYTES);
        List<Life> decoded =
                program.lives().stream().filter(life -> life.stream() == 2).toList();
        long largest = decoded.stream().mapToLong(Life::byteSize).max().orElseThrow();
        long smallest = decoded.stream().mapToLong(Life::byteSize).min().orElseThrow();

        assertThat(largest / smallest).isGreaterThan(100);
        assertThat(program.lives().stream().filter(life -> life.stream() == 1 && life.length() > 1_000))
                .hasSizeGreaterThan(100);
    }
}
