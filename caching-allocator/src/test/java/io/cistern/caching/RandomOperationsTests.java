package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.clearInvocations;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.SegmentSource;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Random allocations, frees on the own and on other streams, uses on others, trims, stream ends and failures for
/// want of memory; no two live blocks overlap and every invariant holds. The property `cistern.random.operations` says
/// how many; of more than usual every thousandth is followed by a check of the invariants, else each.
/// `cistern.random.seed` is added to each seed.
class RandomOperationsTests {
    private static final int USUAL = 2000;
    private static final int OPERATIONS = Integer.getInteger("cistern.random.operations", USUAL);
    private static final int OPERATIONS_A_CHECK = OPERATIONS <= USUAL ? 1 : 1000;
    private static final long MORE_SEED = Long.getLong("cistern.random.seed", 0);
    private static final long CAPACITY = 96L << 20;

    private record Block(long address, long byteSize, long stream) {}

    private final List<Block> live = new ArrayList<>();
    private final TreeMap<Long, Long> ends = new TreeMap<>();

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void pagesKeepTheirInvariants(long seed) {
        TestPages pages = new TestPages(CAPACITY);
        run(pages, seed);
        assertThat(pages.live).as("handles left after close, seed %d", seed).isEmpty();
    }

    @ParameterizedTest(name = "seed {0}")
    @ValueSource(longs = {6, 7, 8})
    void plainSegmentsKeepTheirInvariants(long seed) {
        TestRanges ranges = new TestRanges(CAPACITY);
        run(ranges, seed);
        assertThat(ranges.live).as("segments left after close, seed %d", seed).isEmpty();
    }

    private void run(SegmentSource source, long seed) {
        TestContext context = new TestContext(source);
        CachingAllocator caching = context.open();
        SplittableRandom random = new SplittableRandom(seed + MORE_SEED);
        try {
            for (int i = 0; i < OPERATIONS; i++) {
                operate(caching, context.order, random);
                if (i % OPERATIONS_A_CHECK == 0) {
                    check(caching, context);
                }
            }
            live.forEach(block -> caching.free(block.address, block.byteSize, 0, block.stream));
            caching.close();
            assertThat(caching.reservedBytes(0)).hasValue(0);
            assertThat(context.order.openFences()).isZero();
        } catch (RuntimeException | AssertionError failure) {
            throw new AssertionError("seed " + (seed + MORE_SEED), failure);
        }
    }

    private static void check(CachingAllocator caching, TestContext context) {
        clearInvocations(context.devices); // millions
        context.order.recordedOn.clear();
        context.order.waits.clear();
        caching.checkInvariants();
        assertThat(context.announcedBytes()).isEqualTo(caching.reservedBytes(0).orElseThrow());
    }

    private void operate(CachingAllocator caching, TestOrder order, SplittableRandom random) {
        int dice = random.nextInt(100);
        if (dice < 50) {
            allocate(caching, random);
        } else if (dice < 92) {
            free(caching, random);
        } else if (dice < 94 && !live.isEmpty()) {
            caching.recordUse(live.get(random.nextInt(live.size())).address, 0, stream(random));
        } else if (dice < 96) {
            caching.trim(0, random.nextLong(CAPACITY));
        } else if (dice < 97) {
            caching.streamClosing(0, stream(random));
        } else if (dice < 98) {
            order.busy.add(stream(random));
        } else {
            order.busy.clear();
        }
    }

    private void allocate(CachingAllocator caching, SplittableRandom random) {
        long byteSize = 1 + (long) Math.pow(2, random.nextDouble(24));
        long stream = stream(random);
        try {
            long address = caching.allocate(byteSize, 0, stream);
            var below = ends.floorEntry(address + byteSize - 1);
            assertThat(below == null || below.getValue() <= address)
                    .as("no overlap")
                    .isTrue();
            ends.put(address, address + byteSize);
            live.add(new Block(address, byteSize, stream));
        } catch (DeviceOutOfMemoryException full) {
            assertThat(live).as("memory is in use").isNotEmpty();
        }
    }

    private void free(CachingAllocator caching, SplittableRandom random) {
        if (!live.isEmpty()) {
            Block block = live.remove(random.nextInt(live.size()));
            ends.remove(block.address);
            for (int uses = random.nextInt(8); uses > 5; uses--) {
                caching.recordUse(block.address, 0, stream(random));
            }
            caching.free(block.address, block.byteSize, 0, random.nextInt(8) == 0 ? stream(random) : block.stream);
        }
    }

    private static long stream(SplittableRandom random) {
        return 0x1000L * (1 + random.nextInt(3));
    }
}
