package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
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
