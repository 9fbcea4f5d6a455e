package io.cistern.caching.internal.heap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestContext;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.errors.UnknownAddressException;
import org.junit.jupiter.api.Test;

/// What a shard's heap hands out, finds, claims and drops.
class BlockHeapTests {
    private static final long START = 1L << 40;
    private static final long MIB = 1 << 20;
    private static final long WHOLE = 64 * MIB;

    private static final FreeBlockObserver NOBODY = new FreeBlockObserver() {
        @Override
        public void freed(int free, long from, long to, boolean anew) {}

        @Override
        public void taken(int free, long to) {}

        @Override
        public void served() {}
    };

    private final ShardCounters counters = new ShardCounters(false, TestContext.counters());
    private final Blocks blocks = new Blocks();

    /// Blocks of 16 MiB and more are kept whole.
    private final BlockHeap heap =
            new BlockHeap(blocks, new SplitPolicy(true, 16 * MIB), NOBODY, SmallerRuns.NONE, counters);

    private long ranges;

    /// A range that keeps its addresses, or goes back as a whole.
    private final class Memory extends AddressRange {
        private final boolean keeps;
        private final boolean reuses;
        private final boolean pinned;

        Memory(long byteSize, boolean keeps, boolean reuses, boolean pinned) {
            super(mock(RangeOwner.class), START + ranges++ * (1L << 32), byteSize);
            this.keeps = keeps;
            this.reuses = reuses;
            this.pinned = pinned;
        }

        @Override
        public Range lastReturnable(long from, long to) {
            return pinned ? null : new Range(from, to);
        }

        @Override
        public long giveBack(long from, long to) {
            return to - from;
        }

        @Override
        public boolean keepsAddresses() {
            return keeps;
        }

        @Override
        public boolean reusesAddresses() {
            return reuses;
        }
    }

    private Memory range(long byteSize) {
        return new Memory(byteSize, false, false, false);
    }

    private void free(AddressRange range, long address) {
        heap.makeFree(heap.retire(range, address));
    }

    @Test
    void fromAnySizeTheSmallestBlockServesAndOfEqualsTheLowest() {
        AddressRange large = range(WHOLE);
        AddressRange first = range(20 * MIB);
        AddressRange second = range(20 * MIB);
        AddressRange small = range(2 * MIB);
        for (AddressRange each : new AddressRange[] {large, second, first, small}) {
            free(each, heap.addAndAllocate(each, each.byteSize));
        }
        assertThat(heap.largestFreeBytes()).isEqualTo(WHOLE);
        assertThat(heap.allocate(5 * MIB)).as("kept whole").isZero();
        assertThat(heap.allocateFromAny(5 * MIB, false))
                .as("they can go back instead")
                .isZero();
        assertThat(heap.allocateFromAny(5 * MIB, true)).isEqualTo(first.address);
        assertThat(heap.allocateFromAny(16 * MIB, true)).isEqualTo(second.address);
        assertThat(heap.allocateFromAny(60 * MIB, false)).as("little is left").isEqualTo(large.address);
        assertThat(heap.allocateFromAny(60 * MIB, true)).isZero();
        assertThat(heap.largestFreeBytes()).isEqualTo(15 * MIB);
    }

    @Test
    void whatCanNotGoBackServesAnyRequest() {
        AddressRange pinned = new Memory(WHOLE, false, false, true);
        free(pinned, heap.addAndAllocate(pinned, WHOLE));
        assertThat(heap.allocate(MIB)).isZero();
        assertThat(heap.allocateFromAny(MIB, false)).isEqualTo(pinned.address);
    }

    @Test
    void afterAMissTheSameSizeIsSearchedOnceABlockBecameFree() {
        AddressRange range = range(4 * MIB);
        long address = heap.addAndAllocate(range, 4 * MIB);
        assertThat(heap.allocate(2 * MIB)).isZero();
        assertThat(heap.allocateAfterMiss(2 * MIB)).isZero();
        free(range, address);
        assertThat(heap.allocateAfterMiss(2 * MIB)).isEqualTo(address);
        assertThat(heap.allocateAfterMiss(MIB)).as("another size").isEqualTo(address + 2 * MIB);
    }

    @Test
    void onlyALiveBlockOfItsSizeIsLive() {
        AddressRange range = range(4 * MIB);
        long address = heap.addAndAllocate(range, MIB);
        assertThat(heap.isLive(address, MIB)).isTrue();
        assertThat(heap.isLive(address, 2 * MIB)).isFalse();
        assertThat(heap.isLive(address + MIB, 3 * MIB)).as("free").isFalse();
        assertThat(heap.isLive(range.end(), MIB)).as("behind all ranges").isFalse();
        AddressRange hole = new Memory(256 * MIB, true, true, false);
        heap.addHole(hole);
        assertThat(heap.isLive(hole.address + WHOLE, MIB))
                .as("where no block was")
                .isFalse();
        assertThatExceptionOfType(UnknownAddressException.class)
                .isThrownBy(() -> heap.liveAt(range, address + MIB))
                .withMessageContaining(Long.toHexString(address + MIB));
        free(range, address);
        assertThat(heap.isLive(address, MIB)).isFalse();
    }

    @Test
    void idleBlocksOfTheYoungestRangeAreClaimedFirst() {
        AddressRange old = range(4 * MIB);
        AddressRange young = range(4 * MIB);
        long ofOld = heap.addAndAllocate(old, 4 * MIB);
        long ofYoung = heap.addAndAllocate(young, 4 * MIB);
        free(young, ofYoung);
        free(old, ofOld);
        ClaimedBlocks claimed = new ClaimedBlocks(blocks);
        heap.claimIdle(MIB, claimed);
        assertThat(blocks.address[heap.ranges.get(1).firstBlock]).isEqualTo(ofYoung);
        assertThat(blocks.state[young.firstBlock]).isEqualTo(Blocks.CLAIMED);
        assertThat(blocks.state[old.firstBlock]).isEqualTo(Blocks.FREE);
        heap.claimIdle(WHOLE, claimed);
        assertThat(blocks.state[old.firstBlock]).isEqualTo(Blocks.CLAIMED);
        heap.unclaim(new int[] {old.firstBlock, young.firstBlock}, 1);
        assertThat(blocks.state[old.firstBlock]).isEqualTo(Blocks.FREE);
        assertThat(blocks.state[young.firstBlock]).isEqualTo(Blocks.CLAIMED);
    }

    @Test
    void asManyIdleBlocksAreClaimedAsAreWantedTheLowestFirst() {
        AddressRange range = range(8 * MIB);
        long[] parts = new long[8];
        parts[0] = heap.addAndAllocate(range, MIB);
        for (int i = 1; i < parts.length; i++) {
            parts[i] = heap.allocate(MIB);
        }
        for (int i : new int[] {6, 0, 2, 4}) {
            free(range, parts[i]);
        }
        ClaimedBlocks claimed = new ClaimedBlocks(blocks);
        heap.claimIdle(2 * MIB, claimed);
        assertThat(blocks.address[claimed.remove()]).isEqualTo(parts[0]);
        assertThat(blocks.address[claimed.remove()]).isEqualTo(parts[2]);
        assertThat(claimed.isEmpty()).isTrue();
    }

    @Test
    void aRangeThatWentBackIsGoneUnlessItKeepsItsAddresses() {
        AddressRange gone = range(MIB);
        AddressRange hole = new Memory(MIB, true, true, false);
        AddressRange retired = new Memory(MIB, true, false, false);
        for (AddressRange each : new AddressRange[] {gone, hole, retired}) {
            free(each, heap.addAndAllocate(each, MIB));
            heap.claimPart(each.firstBlock, each.address, each.end());
            heap.gaveBack(each.firstBlock);
        }
        assertThat(heap.ranges).containsExactly(hole, retired);
        assertThat(blocks.state[hole.firstBlock]).isEqualTo(Blocks.HOLE);
        assertThat(blocks.state[retired.firstBlock]).isEqualTo(Blocks.RETIRED);
        assertThat(heap.allocate(MIB)).as("no memory anywhere").isZero();
        assertThat(hole.firstBlock).as("its number is used again").isEqualTo(gone.firstBlock);
    }

    @Test
    void blocksThatComeAndGoNeedNoMoreRecords() {
        AddressRange range = range(4 * MIB);
        long live = heap.addAndAllocate(range, MIB);
        int records = blocks.state.length;
        for (int i = 0; i < 1000; i++) {
            long next = heap.allocate(MIB);
            free(range, live);
            live = next;
        }
        assertThat(blocks.state).hasSize(records);
    }

    @Test
    void rangesEndTogetherOnceNoneHasMemory() {
        AddressRange hole = new Memory(4 * MIB, true, true, false);
        AddressRange used = new Memory(MIB, true, true, false);
        heap.addHole(hole);
        int spent = heap.spend(hole, hole.address + MIB, hole.address + 2 * MIB);
        assertThat(blocks.address[spent]).isEqualTo(hole.address + MIB);
        assertThat(blocks.byteSize[spent]).isEqualTo(MIB);
        int second = heap.spend(hole, hole.address + 2 * MIB, hole.address + 3 * MIB);
        assertThat(blocks.address[second]).isEqualTo(hole.address + 2 * MIB);
        assertThat(blocks.state[second]).isEqualTo(Blocks.RETIRED);

        long live = heap.addAndAllocate(used, MIB);
        assertThat(heap.removeEmptyRegions()).as("a block is live").isNull();
        free(used, live);
        assertThat(heap.removeEmptyRegions()).as("a block has memory").isNull();
        heap.claimPart(used.firstBlock, used.address, used.end());
        heap.gaveBack(used.firstBlock);
        assertThat(heap.removeEmptyRegions()).containsExactly(hole, used);
        assertThat(heap.ranges).isEmpty();
        assertThat(heap.freeRuns.bins.bestFit(MIB)).as("no hole is left").isNegative();

        int most = Math.max(second, used.firstBlock);
        AddressRange next = range(MIB);
        assertThat(heap.addAndAllocate(next, MIB)).isEqualTo(next.address);
        assertThat(heap.isLive(next.address, MIB)).isTrue();
        assertThat(next.firstBlock).as("numbers are used again").isLessThanOrEqualTo(most);
    }
}
