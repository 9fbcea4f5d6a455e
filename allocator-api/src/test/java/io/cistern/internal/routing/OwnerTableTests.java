package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OwnerTableTests {
    /// Blocks of any size at any multiple of 256, as close together as they can lie, against a map that knows
    /// all.
    @ParameterizedTest
    @ValueSource(longs = {1, 42, 20261121})
    void agreesWithAMapOnBlocksOfAllSizesInAnyOrder(long seed) {
        Random random = new Random(seed);
        Router router = new Router();
        Places places = new Places(random);
        Route[] routes = new Route[3];
        for (int i = 0; i < routes.length; i++) {
            routes[i] = router.routes().open("places" + i, i, places, null, () -> {});
        }
        Map<Long, Integer> live = new HashMap<>();
        for (int step = 0; step < 50_000; step++) {
            if (live.isEmpty() || random.nextInt(100) < 55) {
                int route = random.nextInt(routes.length);
                live.put(router.allocate(routes[route], places.nextSize(), step), route);
            } else {
                long block = live.keySet().iterator().next();
                places.expectDevice = live.remove(block);
                router.free(block, step);
                assertThatExceptionOfType(UnknownAddressException.class)
                        .as("seed %d, step %d", seed, step)
                        .isThrownBy(() -> router.free(block, 0));
            }
        }
        long counted = 0;
        for (Route route : routes) {
            RouteStatistics statistics = route.statistics();
            counted += statistics.allocations() - statistics.frees();
        }
        assertThat(counted).as("seed %d", seed).isEqualTo(live.size());
    }

    /// Pools that open and close get ever new addresses.
    @ParameterizedTest
    @ValueSource(longs = {256, 1 << 20})
    void addressesThatDoNotComeAgainTakeNoMemory(long byteSize) {
        OwnerTable owners = new OwnerTable();
        long kept = 1L << 40;
        assertThat(owners.insert(kept, byteSize, 0)).isTrue();
        for (long i = 1; i <= 5 * OwnerTable.FEW; i++) {
            long address = kept + i * (1L << 25);
            assertThat(owners.insert(address, byteSize, 0)).isTrue();
            assertThat(take(owners, address)).isTrue();
        }
        assertThat(owners.chunkCount()).isLessThanOrEqualTo(2 * OwnerTable.FEW);
        assertThat(OwnerTable.byteSizeOf(owners.ownerOf(kept))).isEqualTo(byteSize);
    }

    /// Each thread has one block in thousands of chunks at a time, so that chunks leave all the time while others are
    /// about to get a block.
    @Test
    void blocksAreFoundWhileChunksLeave() throws Exception {
        OwnerTable owners = new OwnerTable(16, 64);
        int threads = 4;
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<?>> running = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                Random random = new Random(thread);
                long slot = (1L << 40) + thread * 256L;
                running.add(executor.submit(() -> insertAndTake(owners, random, slot)));
            }
            for (Future<?> each : running) {
                each.get();
            }
        }
        assertThat(owners.drain(1)).isZero();
    }

    /// All threads use the same chunks, each its own slots.
    private static void insertAndTake(OwnerTable owners, Random random, long slot) {
        Deque<Long> live = new ArrayDeque<>();
        for (int i = 0; i < 300_000; i++) {
            long address = slot + random.nextInt(1 << 12) * (1L << 17);
            if (!live.contains(address)) {
                assertThat(owners.insert(address, 100, 1)).isTrue();
                live.add(address);
            }
            if (live.size() > 3) {
                assertThat(take(owners, live.remove())).isTrue();
            }
        }
        live.forEach(address -> assertThat(take(owners, address)).isTrue());
    }

    private static boolean take(OwnerTable owners, long address) {
        return owners.remove(address, 0, (_, owner, chunk, at, of, _) -> OwnerTable.take(chunk, at, of) == owner);
    }

    @Test
    void holdsBlocksAtBothEndsOfTheAddressSpace() {
        Router router = new Router();
        long[] addresses = {256, (1L << 49) - 256};
        Route route = router.routes()
                .open(
                        "ends",
                        0,
                        new DeviceAllocator() {
                            private int next;

                            @Override
                            public long allocate(long byteSize, int device, long stream) {
                                return addresses[next++];
                            }

                            @Override
                            public void free(long address, long byteSize, int device, long stream) {}
                        },
                        null,
                        () -> {});
        assertThat(router.allocate(route, 100, 0)).isEqualTo(256);
        assertThat(router.allocate(route, 256, 0)).isEqualTo((1L << 49) - 256);
        router.free(256, 0);
        router.free((1L << 49) - 256, 0);
    }

    /// Lays blocks into gaps of a small range, so that slots of all three tables are used again and again.
    private static final class Places implements DeviceAllocator {
        private static final long BASE = 0x7f12_3456_0000L & -256L;
        private static final long SPAN = 1L << 34;
        private final Random random;
        private final TreeMap<Long, Long> live = new TreeMap<>();
        private long size;
        int expectDevice;

        Places(Random random) {
            this.random = random;
        }

        long nextSize() {
            size = 1 + (random.nextLong() & ((1L << (1 + random.nextInt(22))) - 1));
            return size;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            assertThat(byteSize).isEqualTo(size);
            long padded = (byteSize + 255) & -256L;
            // Next to a block when there is room, else anywhere.
            for (int attempt = 0; ; attempt++) {
                Map.Entry<Long, Long> neighbour = attempt == 0 && !live.isEmpty() ? live.lastEntry() : null;
                long address = neighbour != null
                        ? neighbour.getKey() + neighbour.getValue()
                        : BASE + (random.nextLong(SPAN) & -256L);
                if (fits(address, padded)) {
                    live.put(address, padded);
                    return address;
                }
            }
        }

        private boolean fits(long address, long padded) {
            Map.Entry<Long, Long> below = live.floorEntry(address);
            Long above = live.ceilingKey(address);
            return address + padded <= BASE + SPAN
                    && (below == null || below.getKey() + below.getValue() <= address)
                    && (above == null || above >= address + padded);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            assertThat(device).isEqualTo(expectDevice);
            assertThat(live.remove(address)).isEqualTo((byteSize + 255) & -256L);
        }
    }
}
