package io.cistern.simulated.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class FreeRangesTests {
    @Test
    void takesTheSmallestThatFitsAndMergesOnReturn() {
        FreeRanges free = new FreeRanges();
        free.put(0, 100);
        free.put(200, 50);
        assertThat(free.bestFit(40)).isEqualTo(new FreeRanges.Range(200, 50));
        free.put(100, 100);
        assertThat(free.bestFit(1)).isEqualTo(new FreeRanges.Range(0, 250));
        assertThat(free.bestFit(251)).isNull();
    }

    @Test
    void keepsItsInvariantUnderRandomUse() {
        long seed = Long.getLong("cistern.testkit.seed", 20_260_101L);
        Random random = new Random(seed);
        FreeRanges free = new FreeRanges();
        free.put(1 << 20, 1 << 20);
        List<FreeRanges.Range> live = new ArrayList<>();
        for (int round = 0; round < 5_000; round++) {
            FreeRanges.Range range = free.bestFit(1 + random.nextInt(5_000));
            if (range != null && random.nextInt(5) > 1) {
                long size = Math.min(range.byteSize(), 1 + random.nextInt(5_000));
                free.take(range.address(), size);
                live.add(new FreeRanges.Range(range.address(), size));
            } else if (!live.isEmpty()) {
                FreeRanges.Range back = live.remove(random.nextInt(live.size()));
                free.put(back.address(), back.byteSize());
            }
            assertThat(isWhole(free)).as("seed %d, round %d", seed, round).isTrue();
        }
    }

    private static boolean isWhole(FreeRanges free) {
        long end = Long.MIN_VALUE;
        for (FreeRanges.Range range : free.all()) {
            if (range.address() <= end || !free.bySize.contains(range)) {
                return false;
            }
            end = range.end();
        }
        return free.bySize.size() == free.byAddress.size();
    }
}
