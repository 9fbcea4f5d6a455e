package io.cistern.caching.internal.heap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import io.cistern.caching.internal.base.Sizes;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SizeBinsTests {
    private static final RangeOwner OWNER =
            mock(RangeOwner.class, withSettings().stubOnly());

    private final Blocks blocks = new Blocks();
    private final SizeBins bins = new SizeBins(blocks);
    private final List<Integer> free = new ArrayList<>();
    private long nextAddress = 512;

    @Test
    void binsNeverGetSmallerAsSizesGrow() {
        int before = -1;
        for (long size = 512; size < 1L << 30; size += size < 4 << 20 ? 512 : 512 * 1013) {
            int bin = SizeBins.binOf(size);
            assertThat(bin).isGreaterThanOrEqualTo(before);
            before = bin;
        }
        assertThat(SizeBins.binOf(Sizes.LARGEST)).isGreaterThan(before);
    }

    @Test
    void upToOneMebibyteEachSizeHasItsOwnBin() {
        assertThat(SizeBins.binOf(512)).isZero();
        assertThat(SizeBins.binOf(1 << 20)).isEqualTo(2047);
        assertThat(SizeBins.binOf((1 << 20) + 512)).isEqualTo(2048);
    }

    @Test
    void aboveThatEachDoublingHasSixtyFourSteps() {
        assertThat(SizeBins.binOf((1 << 20) + (1 << 14))).isEqualTo(2048);
        assertThat(SizeBins.binOf((1 << 20) + (1 << 14) + 512)).isEqualTo(2049);
        assertThat(SizeBins.binOf(2 << 20)).isEqualTo(2111);
        assertThat(SizeBins.binOf((2 << 20) + 512)).isEqualTo(2112);
        int largest = insert(Sizes.LARGEST);
        assertThat(bins.bestFit(Sizes.LARGEST)).isEqualTo(largest);
        assertThat(bins.findFrom(Sizes.LARGEST, _ -> false)).isEqualTo(Blocks.NONE);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void ofLargeBlocksOfABinTheSmallestIsTakenAndOfEqualsTheLowest(boolean reversed) {
        long size = (1 << 20) + 512;
        List<Integer> all = new ArrayList<>();
        for (long byteSize : new long[] {size, size, size + 512}) {
            all.add(blocks.add(range(byteSize), Blocks.FREE));
        }
        for (int block : reversed ? all.reversed() : all) {
            bins.insert(block, blocks.byteSize[block]);
        }
        for (int best : all) {
            assertThat(bins.bestFit(size)).isEqualTo(best);
            bins.remove(best);
        }
    }

    @Test
    void theCheckFindsBrokenRecords() {
        int block = insert(4096);
        int head = insert(4096);
        assertThat(bins.checkInvariants()).isEqualTo(2);
        blocks.state[block] = Blocks.LIVE;
        assertBroken("a listed block is in a free run");
        blocks.state[block] = Blocks.HOLE;
        blocks.runBytes[block] = 8192;
        assertBroken("a block is in the bin of its free run");
        blocks.runBytes[block] = 4096;
        blocks.listPrevious[block] = Blocks.NONE;
        assertBroken("lists are linked both ways");
        blocks.listPrevious[block] = head;
        assertThat(bins.checkInvariants()).isEqualTo(2);
    }

    private void assertBroken(String invariant) {
        assertThatIllegalStateException().isThrownBy(bins::checkInvariants).withMessageContaining(invariant);
    }

    @Test
    void aFittingBlockIsFoundBehindManyThatAreTooSmall() {
        long size = 100L << 20;
        int fitting = insert(size + 512 * 10);
        for (int i = 0; i < 100; i++) {
            insert(size);
        }
        assertThat(bins.bestFit(size + 512)).isEqualTo(fitting);
    }

    @Test
    void blocksAreFoundByTheirGapsIfTheyAreLongEnoughThemselves() {
        int tight = insert(4096);
        int shortInGap = blocks.add(range(512), Blocks.FREE);
        bins.insert(shortInGap, 2048);
        int inGap = blocks.add(range(4096), Blocks.FREE);
        bins.insert(inGap, 1 << 20);
        assertThat(bins.bestFit(1024)).isEqualTo(tight);
        bins.remove(tight);
        assertThat(bins.bestFit(1024)).isEqualTo(inGap);
        assertThat(bins.bestFit(512)).isEqualTo(shortInGap);
        assertThat(bins.bestFit(4608)).isEqualTo(Blocks.NONE);
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {11, 12, 13})
    void aSearchFindsABlockExactlyIfOneFitsAndTheBestOneIfItIsSmall(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < 5000; i++) {
            if (free.size() < 40 || random.nextInt(2) == 0) {
                insert(size(random));
            } else {
                bins.remove(free.remove(random.nextInt(free.size())));
            }
            checkSearch(size(random), seed);
        }
        assertThat(bins.checkInvariants()).isEqualTo(free.size());
    }

    private void checkSearch(long wanted, long seed) {
        long best = free.stream()
                .mapToLong(block -> blocks.byteSize[block])
                .filter(size -> size >= wanted)
                .min()
                .orElse(0);
        int found = bins.bestFit(wanted);
        assertThat(found == Blocks.NONE).as("seed %d", seed).isEqualTo(best == 0);
        if (found != Blocks.NONE) {
            long slack = best <= 1 << 20 ? 0 : best / 64;
            assertThat(blocks.byteSize[found]).as("seed %d", seed).isBetween(best, best + slack);
        }
    }

    private static long size(SplittableRandom random) {
        return Sizes.rounded(1 + (long) Math.pow(2, random.nextDouble(28)), Sizes.GRANULE);
    }

    private int insert(long byteSize) {
        int block = blocks.add(range(byteSize), Blocks.FREE);
        bins.insert(block, byteSize);
        free.add(block);
        return block;
    }

    private AddressRange range(long byteSize) {
        long address = nextAddress;
        nextAddress += byteSize;
        return new AddressRange(OWNER, address, byteSize) {
            @Override
            public @Nullable Range lastReturnable(long from, long to) {
                return null;
            }

            @Override
            public long giveBack(long from, long to) {
                return STAYS;
            }
        };
    }
}
