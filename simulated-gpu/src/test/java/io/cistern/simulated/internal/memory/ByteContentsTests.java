package io.cistern.simulated.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class ByteContentsTests {
    private static final int SIZE = 50_000;

    @Test
    void behavesAsAPlainArrayUnderRandomFillsWritesAndCopies() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        Random random = new Random(seed);
        byte[] expected = new byte[SIZE];
        ByteContents contents = new ByteContents(SIZE);
        for (int round = 0; round < 2_000; round++) {
            int offset = random.nextInt(SIZE);
            int size = random.nextInt(Math.min(SIZE - offset, random.nextBoolean() ? 20 : 20_000) + 1);
            if (random.nextBoolean()) {
                int word = random.nextInt(4) == 0 ? random.nextInt() : 0x0101_0101 * random.nextInt(3);
                contents.fill(offset, size, word);
                for (int i = offset; i < offset + size; i++) {
                    expected[i] = (byte) (word >>> (8 * (i % 4)));
                }
            } else {
                byte[] data = new byte[size];
                random.nextBytes(data);
                contents.write(offset, data, 0, size);
                System.arraycopy(data, 0, expected, offset, size);
            }
            assertThat(areWithoutGaps(contents))
                    .as("seed %d, round %d", seed, round)
                    .isTrue();
            int from = random.nextInt(SIZE);
            int length = random.nextInt(SIZE - from) + 1;
            byte[] read = new byte[length];
            contents.forEachRun(from, length, new HostSink(MemorySegment.ofArray(read), from));
            assertThat(read)
                    .as("seed %d, round %d", seed, round)
                    .isEqualTo(java.util.Arrays.copyOfRange(expected, from, from + length));
        }
    }

    private static boolean areWithoutGaps(ByteContents contents) {
        long at = 0;
        for (Map.Entry<Long, ByteContents.Run> entry : contents.runs.entrySet()) {
            if (entry.getKey() != at || entry.getValue().end <= at) {
                return false;
            }
            at = entry.getValue().end;
        }
        return at == SIZE;
    }

    @Test
    void aFillIsOneRunWhateverWasThereBefore() {
        ByteContents contents = new ByteContents(1L << 40);
        for (int i = 0; i < 1_000; i++) {
            contents.write(i * 100_000L, new byte[] {1, 2, 3}, 0, 3);
        }
        contents.fill(0, 1L << 40, 7);
        assertThat(contents.runs).hasSize(1);
    }

    @Test
    void neighboursOfOnePatternMerge() {
        ByteContents contents = new ByteContents(1 << 20);
        for (int i = 0; i < 1_024; i++) {
            contents.fill(i * 1024L, 1024, 5);
        }
        assertThat(contents.runs).hasSize(1);
    }

    @Test
    void countsMismatchesAsAPlainLoopDoes() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        Random random = new Random(seed);
        for (int round = 0; round < 300; round++) {
            int words = 1 + random.nextInt(3_000);
            ByteContents contents = new ByteContents(4L * words + 8);
            int first = random.nextInt(4) - 2;
            for (int i = 0; i < 10; i++) {
                int offset = random.nextInt(4 * words);
                contents.fill(offset, random.nextInt(4 * words - offset), first + random.nextInt(3));
            }
            contents.write(random.nextInt(4 * words), new byte[] {1, 0, 0, 0, 2}, 0, 5);
            for (int step = 0; step <= 1; step++) {
                WordScanner scanner = new WordScanner(first, step);
                contents.forEachRun(0, 4L * words, scanner);
                assertThat(scanner.mismatches())
                        .as("seed %d, round %d, step %d", seed, round, step)
                        .isEqualTo(naiveMismatches(contents, words, first, step));
            }
        }
    }

    private static long naiveMismatches(ByteContents contents, int words, int first, int step) {
        MemorySegment bytes = MemorySegment.ofArray(new byte[4 * words]);
        contents.forEachRun(0, 4L * words, new HostSink(bytes, 0));
        long mismatches = 0;
        for (int i = 0; i < words; i++) {
            int value = bytes.get(java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED, 4L * i);
            mismatches += value == first + step * i ? 0 : 1;
        }
        return mismatches;
    }
}
