package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spi.DeviceAllocator;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// One record after the other in the table of owners; [OwnerTableTests] mixes them.
final class OwnerRecordTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final long LARGE = 64 << 10;

    private final Router router = new Router();
    private final OwnerTable table = new OwnerTable();
    private final Route[] routes = new Route[3];

    OwnerRecordTests() {
        DeviceAllocator none = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return 0;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        };
        for (int i = 0; i < routes.length; i++) {
            routes[i] = router.routes().open("route" + i, 0, none, null, () -> {});
            table.routes[i] = routes[i];
        }
    }

    /// Frees as the router does.
    private boolean remove(long address) {
        return table.remove(address, 0, (route, owner, chunk, at, block, _) -> {
            assertThat(route).isSameAs(table.routeOf(owner));
            assertThat(OwnerTable.ownerIn(chunk, at)).isEqualTo(owner);
            int state = OwnerTable.stateOf(chunk, at, block);
            return state != 0 && OwnerTable.take(chunk, at, block, state) == owner;
        });
    }

    private Map<Long, Long> live() {
        Map<Long, Long> live = new TreeMap<>();
        table.forEachLive((address, owner, _) -> live.put(address, OwnerTable.byteSizeOf(owner)));
        return live;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 256, LARGE - 1, LARGE, LARGE + 1, 1L << 30, (1L << 48) - 1})
    void aRecordKeepsSizeAndRouteUntilItIsRemoved(long byteSize) {
        assertThat(table.ownerOf(BASE)).isEqualTo(OwnerTable.NONE);
        assertThat(table.insert(BASE, byteSize, 2)).isTrue();
        long owner = table.ownerOf(BASE);
        assertThat(OwnerTable.byteSizeOf(owner)).isEqualTo(byteSize);
        assertThat(table.routeOf(owner)).isSameAs(routes[2]);
        assertThat(live()).containsExactly(Map.entry(BASE, byteSize));
        assertThat(table.ownerOf(BASE + 256)).isEqualTo(OwnerTable.NONE);
        assertThat(remove(BASE + 256)).isFalse();
        assertThat(remove(BASE)).isTrue();
        assertThat(remove(BASE)).isFalse();
        assertThat(table.ownerOf(BASE)).isEqualTo(OwnerTable.NONE);
        assertThat(live()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"100, 200", "100, 70000", "70000, 100", "70000, 80000"})
    void anAddressHasOneRecordWhateverItsSize(long first, long second) {
        assertThat(table.insert(BASE, first, 0)).isTrue();
        assertThat(table.insert(BASE, second, 1)).isFalse();
        assertThat(OwnerTable.byteSizeOf(table.ownerOf(BASE))).isEqualTo(first);
        remove(BASE);
        assertThat(table.insert(BASE, second, 1)).isTrue();
        assertThat(table.insert(BASE, first, 0)).isFalse();
        assertThat(OwnerTable.byteSizeOf(table.ownerOf(BASE))).isEqualTo(second);
    }

    /// The chunks of both tables were made before, in either order, for other blocks of their addresses.
    @ParameterizedTest
    @CsvSource({"100, 70000", "70000, 100"})
    void anAddressHasOneRecordWhereBothTablesHaveChunks(long first, long second) {
        long other = BASE + (1 << 16);
        assertThat(table.insert(other, first, 0)).isTrue();
        remove(other);
        assertThat(table.insert(BASE, second, 0)).isTrue();
        assertThat(table.insert(BASE, first, 1)).isFalse();
        assertThat(table.insert(BASE, second, 1)).isFalse();
        assertThat(live()).containsExactly(Map.entry(BASE, second));
    }

    /// A chunk of small blocks spans two slots of large ones.
    @Test
    void aLargeBlockKeepsItsAddressBeforeAnySmallBlockLiesThere() {
        for (long address : new long[] {BASE, BASE + LARGE}) {
            assertThat(table.insert(address, LARGE, 0)).isTrue();
        }
        for (long address : new long[] {BASE + LARGE, BASE}) {
            assertThat(table.insert(address, 100, 1)).isFalse();
        }
        assertThat(remove(BASE + LARGE)).isTrue();
        assertThat(table.insert(BASE + LARGE, 100, 1)).isTrue();
    }

    @Test
    void theSecondSlotOfLargeBlocksIsSeenAlone() {
        assertThat(table.insert(BASE + LARGE, LARGE, 0)).isTrue();
        assertThat(table.insert(BASE + LARGE, 100, 1)).isFalse();
    }

    @Test
    void smallAndLargeBlocksLieSideBySide() {
        long at = BASE;
        Map<Long, Long> inserted = new TreeMap<>();
        for (int i = 0; i < 3000; i++) {
            long byteSize = i % 3 == 0 ? LARGE : 256L * (1 + i % 7);
            assertThat(table.insert(at, byteSize, i % 3)).isTrue();
            inserted.put(at, byteSize);
            at += byteSize + (i % 100 == 0 ? 32 << 20 : 0);
        }
        assertThat(live()).isEqualTo(inserted);
        inserted.forEach((address, byteSize) -> {
            assertThat(OwnerTable.byteSizeOf(table.ownerOf(address))).isEqualTo(byteSize);
            assertThat(remove(address)).isTrue();
        });
        assertThat(live()).isEmpty();
    }

    /// Thousands of chunks, so that directories grow.
    @Test
    void blocksFarApartAreAllFound() {
        for (int i = 1; i <= 500; i++) {
            assertThat(table.insert(((long) i << 33) + 256, 256, 0)).isTrue();
            assertThat(table.insert(((long) i << 33) + LARGE, LARGE, 1)).isTrue();
        }
        assertThat(live()).hasSize(1000);
        for (int i = 1; i <= 500; i++) {
            assertThat(table.insert(((long) i << 33) + 256, 256, 0)).isFalse();
            assertThat(remove(((long) i << 33) + 256)).isTrue();
            assertThat(remove(((long) i << 33) + LARGE)).isTrue();
        }
    }

    @Test
    void aFreeOfABlockThatOthersUseIsSeenAsSuch() {
        for (long byteSize : new long[] {256, LARGE}) {
            assertThat(table.markUsed(BASE)).as("no block").isFalse();
            table.insert(BASE, byteSize, 0);
            assertThat(table.markUsed(BASE)).isTrue();
            assertThat(table.markUsed(BASE)).as("again").isTrue();
            assertThat(table.markUsed(BASE + 256)).isFalse();
            assertThat(live()).containsKey(BASE);
            boolean freed = table.remove(BASE, 0, (_, _, chunk, at, block, _) -> {
                assertThat(OwnerTable.stateOf(chunk, at, block)).isEqualTo(OwnerTable.LIVE | OwnerTable.USED);
                assertThat(OwnerTable.take(chunk, at, block)).isEqualTo(OwnerTable.NONE);
                return OwnerTable.take(chunk, at, block, OwnerTable.LIVE | OwnerTable.USED) != OwnerTable.NONE;
            });
            assertThat(freed).isTrue();
            assertThat(table.markUsed(BASE)).isFalse();
        }
    }

    @Test
    void theBlocksOfOneRouteDrainAndStayFound() {
        table.insert(BASE, 256, 0);
        table.insert(BASE + 256, 256, 1);
        table.insert(BASE + LARGE, LARGE, 1);
        table.insert(BASE + 2 * LARGE, LARGE, 2);
        table.markUsed(BASE + 256);
        assertThat(table.drain(1)).isEqualTo(2);
        assertThat(table.drain(1)).as("already draining").isZero();
        assertThat(live()).hasSize(4);
        assertThat(stateOf(BASE)).isEqualTo(OwnerTable.LIVE);
        assertThat(stateOf(BASE + 256)).isEqualTo(OwnerTable.DRAINING | OwnerTable.USED);
        assertThat(stateOf(BASE + LARGE)).isEqualTo(OwnerTable.DRAINING);
        assertThat(stateOf(BASE + 2 * LARGE)).isEqualTo(OwnerTable.LIVE);
        assertThat(remove(BASE + LARGE)).isTrue();
    }

    private int stateOf(long address) {
        int[] state = {0};
        table.remove(address, 0, (_, _, chunk, at, block, _) -> {
            state[0] = OwnerTable.stateOf(chunk, at, block);
            return true;
        });
        return state[0];
    }
}
