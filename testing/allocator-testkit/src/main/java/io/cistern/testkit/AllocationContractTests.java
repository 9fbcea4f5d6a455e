package io.cistern.testkit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// Many blocks at once: no two overlap, and each keeps its contents.
abstract class AllocationContractTests extends ConformanceContractTests {
    AllocationContractTests(AllocatorConformance suite) {
        super(suite);
    }

    @Test
    void sizesOverTheWholeRange() {
        long stream = stream();
        for (long power = 1; power <= 64 * MIB; power *= 2) {
            for (long byteSize : new long[] {power - 1, power, power + 1}) {
                if (byteSize > 0) {
                    allocate(byteSize, stream);
                }
            }
        }
        assertContents();
    }

    @Test
    void hugeBlocks() {
        long stream = stream();
        for (long byteSize : new long[] {100 * MIB + 3, 256 * MIB, 300 * MIB + 1}) {
            free(allocate(byteSize, stream));
            assertContents();
        }
    }

    @Test
    void contentsSurviveTheFreesOfNeighbours() {
        long stream = stream();
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            blocks.add(allocate(1 + i * 137L, stream));
        }
        for (int i = 0; i < blocks.size(); i += 2) {
            free(blocks.get(i));
        }
        for (int i = 1; i < blocks.size(); i += 2) {
            verify(blocks.get(i), stream);
        }
        assertContents();
    }

    @Test
    void contentsSurviveTheReuseOfNeighbours() {
        long stream = stream();
        Random random = new Random(Seed.current());
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            blocks.add(allocate(1 + random.nextInt(64 * 1024), stream));
        }
        for (int round = 0; round < 5; round++) {
            Collections.shuffle(blocks, random);
            for (int i = 0; i < 100; i++) {
                free(blocks.set(i, allocate(1 + random.nextInt(64 * 1024), stream)));
            }
        }
        assertContents();
    }

    @Test
    void freesInTheOrderOfAllocationAndAgainstIt() {
        long stream = stream();
        for (int round = 0; round < 4; round++) {
            List<Block> blocks = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                blocks.add(allocate((1L + i) * 100 * KIB, stream));
            }
            (round % 2 == 0 ? blocks : blocks.reversed()).forEach(this::free);
        }
        assertContents();
    }

    @Test
    void thousandsOfRandomOperationsOnSeveralStreams() {
        new RandomWork(this, Seed.current(), streams(4)).run(4000);
        assertContents();
    }

    @Test
    void randomOperationsWithManySmallBlocks() {
        new RandomWork(this, Seed.current() + 1, streams(2)).upTo(4 * KIB).run(4000);
        assertContents();
    }
}
