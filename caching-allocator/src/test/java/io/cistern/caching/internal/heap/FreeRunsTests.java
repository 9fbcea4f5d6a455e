package io.cistern.caching.internal.heap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestContext;
import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.base.ShardCounters;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitPolicy;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntPredicate;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The free runs of a range against a walk over all its blocks, in random order.
class FreeRunsTests {
    private static final long START = 1L << 40;
    private static final long BYTES = 32 << 20;
    private static final long LARGEST_REQUEST = 3 << 20;

    private final Blocks blocks = new Blocks();
    private final ShardCounters counters = new ShardCounters(false, TestContext.counters());
    private final Observed observed = new Observed();
    private final BlockHeap heap = new BlockHeap(blocks, SplitPolicy.ANY, observed, SmallerRuns.NONE, counters);
    private final FreeRuns runs = heap.freeRuns;
    private final AddressRange range = new AddressRange(mock(RangeOwner.class), START, BYTES) {
        @Override
        public Range lastReturnable(long from, long to) {
            return new Range(from, to);
        }

        @Override
        public long giveBack(long from, long to) {
            return to - from;
        }

        @Override
        public boolean keepsAddresses() {
            return true;
        }

        @Override
        public boolean reusesAddresses() {
            return true;
        }
    };

    /// What the heap says of its free granules.
    private final class Observed implements FreeBlockObserver {
        private final BitSet free = new BitSet();
        private final BitSet anew = new BitSet();
        private int served;

        @Override
        public void freed(int block, long from, long to, boolean isNew) {
            assertThat(from).isGreaterThanOrEqualTo(blocks.address[block]);
            assertThat(to).isLessThanOrEqualTo(blocks.end(block));
            free.set(granule(from), granule(to));
            anew.set(granule(from), granule(to), isNew);
        }

        @Override
        public void taken(int block, long to) {
            free.clear(granule(blocks.address[block]), granule(to));
        }

        @Override
        public void served() {
            served++;
        }
    }

    private static int granule(long address) {
        return (int) ((address - START) >>> Sizes.GRANULE_SHIFT);
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2, 3})
    void agreeWithAWalkOverAllBlocks(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        heap.addHole(range);
        fill(range.firstBlock);
        for (int i = 0; i < 600; i++) {
            switch (random.nextInt(10)) {
                case 0, 1, 2 -> allocate(size(random));
                case 9 -> allocateFromAny(size(random));
                case 3, 4 -> free(random);
                case 5 -> giveBack(random);
                case 6 -> with(random, Blocks.HOLE, this::fill);
                case 7 -> lend(random);
                default -> with(random, Blocks.ALIASED, this::takeBack);
            }
            compare(random);
        }
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2, 3})
    void partsOfSegmentsAreCounted(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        heap.addAndAllocate(range, LARGEST_REQUEST);
        for (int i = 0; i < 500; i++) {
            if (random.nextBoolean()) {
                allocate(size(random));
            } else {
                free(random);
            }
            List<Integer> parts = all(Blocks.FREE);
            parts.removeIf(block -> blocks.byteSize[block] == BYTES);
            assertThat(counters.gauge(CacheStat.INACTIVE_SPLIT).current()).isEqualTo(parts.size());
            assertThat(counters.gauge(CacheStat.INACTIVE_SPLIT_BYTES).current())
                    .isEqualTo(parts.stream()
                            .mapToLong(block -> blocks.byteSize[block])
                            .sum());
        }
    }

    @Test
    void theCheckFindsBrokenRecords() {
        heap.addHole(range);
        int first = range.firstBlock;
        fill(first);
        int aliased = runs.alias(first, START + 4096, START + 8192);
        int inner = blocks.next[aliased];
        runs.alias(inner, START + 12288, START + 16384);
        int last = blocks.next[blocks.next[inner]];
        assertThat(runs.checkInvariants()).isEqualTo(3);
        runs.check(first);

        breaks(blocks.state, inner, Blocks.HOLE, "a listed block is free", runs::checkInvariants);
        breaks(blocks.state, aliased, Blocks.LIVE, "does not begin its free run", runs::checkInvariants);
        blocks.listPrevious[inner] = inner;
        assertBroken("the list is linked both ways", runs::checkInvariants);
        blocks.runEnd[first] = aliased;
        assertBroken("first block leads to its last", () -> runs.check(first));
        blocks.runEnd[first] = last;
        blocks.runEnd[last] = inner;
        assertBroken("last block leads to its first", () -> runs.check(first));
        blocks.runEnd[last] = first;
        blocks.runBytes[first] += 512;
        assertBroken("first block records its size", () -> runs.check(first));
    }

    private static void breaks(byte[] states, int block, byte state, String invariant, ThrowingCallable check) {
        byte before = states[block];
        states[block] = state;
        assertBroken(invariant, check);
        states[block] = before;
    }

    private static void assertBroken(String invariant, ThrowingCallable check) {
        assertThatIllegalStateException().isThrownBy(check).withMessageContaining(invariant);
    }

    private static long size(SplittableRandom random) {
        double exponent = random.nextInt(4) == 0 ? 0 : random.nextDouble(Math.log(LARGEST_REQUEST));
        return Sizes.rounded((long) Math.exp(exponent), Sizes.GRANULE);
    }

    /// A request gets the start of the smallest run that begins with enough free bytes.
    private void allocate(long byteSize) {
        List<Integer> fitting = firsts();
        fitting.removeIf(block -> !blocks.is(block, Blocks.FREE) || blocks.byteSize[block] < byteSize);
        long best = fitting.stream().mapToLong(this::runBytes).min().orElse(0);
        int served = observed.served;
        List<Long> addresses =
                fitting.stream().map(block -> blocks.address[block]).toList();
        List<Long> sizes = fitting.stream().map(this::runBytes).toList();
        long address = heap.allocate(byteSize);
        assertThat(address != 0).isEqualTo(best > 0);
        if (address != 0) {
            assertThat(addresses).contains(address);
            assertThat(sizes.get(addresses.indexOf(address)))
                    .isBetween(best, best <= 1 << 20 ? best : best + best / 64);
            assertThat(observed.served).isEqualTo(served + 1);
        }
    }

    private void allocateFromAny(long byteSize) {
        long expected = all(block -> blocks.is(block, Blocks.FREE) && blocks.byteSize[block] >= byteSize).stream()
                .min(Comparator.comparingLong(block -> blocks.byteSize[block]))
                .map(block -> blocks.address[block])
                .orElse(0L);
        assertThat(heap.allocateFromAny(byteSize, true)).isEqualTo(expected);
    }

    private void free(SplittableRandom random) {
        with(random, Blocks.LIVE, block -> {
            long from = blocks.address[block];
            long to = blocks.end(block);
            heap.makeFree(heap.retire(range, from));
            assertThat(observed.anew.nextClearBit(granule(from))).isGreaterThanOrEqualTo(granule(to));
        });
    }

    private void giveBack(SplittableRandom random) {
        with(
                random,
                Blocks.FREE,
                block -> heap.gaveBack(heap.claimPart(block, from(random, block), to(random, block))));
    }

    private void fill(int hole) {
        runs.claim(hole, hole);
        heap.makeFree(hole);
    }

    private void lend(SplittableRandom random) {
        with(random, Blocks.FREE, block -> {
            long from = from(random, block);
            long to = to(random, block);
            int aliased = runs.alias(block, from, to);
            assertThat(blocks.address[aliased]).isEqualTo(from);
            assertThat(blocks.end(aliased)).isEqualTo(to);
        });
    }

    private void takeBack(int aliased) {
        int from = granule(blocks.address[aliased]);
        int to = granule(blocks.end(aliased));
        heap.claim(aliased);
        heap.restore(aliased);
        assertThat(observed.anew.get(from, to).isEmpty()).isTrue();
    }

    /// In the first half of a block.
    private long from(SplittableRandom random, int block) {
        long granules = blocks.byteSize[block] >>> (Sizes.GRANULE_SHIFT + 1);
        return blocks.address[block]
                + (random.nextBoolean() ? 0 : random.nextLong(granules + 1) << Sizes.GRANULE_SHIFT);
    }

    /// Behind that half.
    private long to(SplittableRandom random, int block) {
        long granules = blocks.byteSize[block] >>> (Sizes.GRANULE_SHIFT + 1);
        return blocks.end(block) - (random.nextBoolean() ? 0 : random.nextLong(granules) << Sizes.GRANULE_SHIFT);
    }

    private interface Change {
        void make(int block);
    }

    private void with(SplittableRandom random, byte state, Change change) {
        List<Integer> all = all(state);
        all.removeIf(block -> state == Blocks.FREE && blocks.byteSize[block] == Sizes.GRANULE);
        if (!all.isEmpty()) {
            change.make(all.get(random.nextInt(all.size())));
        }
    }

    private List<Integer> all(byte state) {
        return all(block -> blocks.state[block] == state);
    }

    private List<Integer> all(IntPredicate wanted) {
        List<Integer> all = new ArrayList<>();
        for (int block = range.firstBlock; block != Blocks.NONE; block = blocks.next[block]) {
            if (wanted.test(block)) {
                all.add(block);
            }
        }
        return all;
    }

    private boolean isInRun(int block) {
        return block != Blocks.NONE && FreeRuns.isInRun(blocks.state[block]);
    }

    /// The blocks that begin free runs.
    private List<Integer> firsts() {
        return all(block -> isInRun(block) && !isInRun(blocks.previous[block]));
    }

    private long runBytes(int first) {
        long bytes = 0;
        for (int block = first; isInRun(block); block = blocks.next[block]) {
            bytes += blocks.byteSize[block];
        }
        return bytes;
    }

    private void compare(SplittableRandom random) {
        List<Integer> free = all(Blocks.FREE);
        assertThat(runs.checkInvariants()).isEqualTo(free.size());
        all(_ -> true).forEach(runs::check);
        assertThat(runs.aliases).isEqualTo(all(Blocks.ALIASED).size());
        BitSet granules = new BitSet();
        free.forEach(block -> granules.set(granule(blocks.address[block]), granule(blocks.end(block))));
        assertThat(observed.free).isEqualTo(granules);
        compareRuns(size(random), size(random));
        List<Integer> firsts = firsts();
        compareRuns(Sizes.GRANULE, firsts.isEmpty() ? BYTES : runBytes(firsts.getFirst()));
        compareSearches(random, free);
    }

    private void compareRuns(long one, long two) {
        int least = SizeBins.binOf(Math.min(one, two));
        int most = SizeBins.binOf(Math.max(one, two));
        List<Integer> expected = firsts();
        expected.removeIf(first -> binOf(first) < least || binOf(first) > most);
        List<Integer> seen = new ArrayList<>();
        runs.forEachRun(Math.min(one, two), Math.max(one, two), first -> !seen.add(first));
        assertThat(seen).containsExactlyInAnyOrderElementsOf(expected);
        assertThat(seen).isSortedAccordingTo(Comparator.comparingInt(this::binOf));
        seen.clear();
        runs.forEachRun(Math.min(one, two), Math.max(one, two), seen::add);
        int smallest = expected.stream().mapToInt(this::binOf).min().orElse(0);
        expected.removeIf(first -> binOf(first) > smallest);
        assertThat(seen).as("stops after a bin").containsExactlyInAnyOrderElementsOf(expected);
    }

    private int binOf(int first) {
        return SizeBins.binOf(runBytes(first));
    }

    private void compareSearches(SplittableRandom random, List<Integer> free) {
        long byteSize = size(random);
        Comparator<Integer> bySize = Comparator.comparingLong(block -> blocks.byteSize[block]);
        assertThat(runs.smallest(byteSize, block -> blocks.address[block] % 1024 == 0))
                .isEqualTo(free.stream()
                        .filter(block -> blocks.byteSize[block] >= byteSize && blocks.address[block] % 1024 == 0)
                        .min(bySize.thenComparingLong(block -> blocks.address[block]))
                        .orElse(Blocks.NONE));
        assertThat(heap.largestFreeBytes())
                .isEqualTo(free.stream()
                        .mapToLong(block -> blocks.byteSize[block])
                        .max()
                        .orElse(0));
        long from = START + random.nextLong((BYTES - byteSize >>> Sizes.GRANULE_SHIFT) + 1) * Sizes.GRANULE;
        long to = from + byteSize;
        assertThat(runs.findFree(range, from, to))
                .isEqualTo(free.stream()
                        .filter(block -> blocks.address[block] <= from && blocks.end(block) >= to)
                        .findFirst()
                        .orElse(Blocks.NONE));
    }
}
