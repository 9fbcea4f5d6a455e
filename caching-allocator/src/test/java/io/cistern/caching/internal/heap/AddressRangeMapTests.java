package io.cistern.caching.internal.heap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.caching.TestContext;
import io.cistern.errors.UnknownAddressException;
import org.junit.jupiter.api.Test;

class AddressRangeMapTests {
    private static final long SLOT = 2 << 20;
    private static final long BASE = 5L << 40;

    private final AddressRangeMap map = new AddressRangeMap();

    @Test
    void anAddressLeadsToItsRegion() {
        AddressRange range = put(BASE, 3 * SLOT);
        assertThat(map.find(BASE)).isSameAs(range);
        assertThat(map.find(BASE + 3 * SLOT - 1)).isSameAs(range);
        assertThat(map.find(BASE + 3 * SLOT)).isNull();
        assertThat(map.find(BASE - 1)).isNull();
    }

    @Test
    void anAddressNoGpuHasIsInNoRegion() {
        assertThat(map.find(-1)).isNull();
        assertThat(map.find(Long.MIN_VALUE)).isNull();
        assertThat(map.find(0)).isNull();
        assertThat(map.find(1L << 49)).isNull();
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> map.get(BASE));
        AddressRange range = put(BASE, SLOT);
        assertThat(map.get(BASE)).isSameAs(range);
    }

    @Test
    void twoRegionsMayShareASlotWhicheverComesFirst() {
        AddressRange low = put(BASE + 256, SLOT);
        AddressRange high = put(BASE + 256 + SLOT, SLOT);
        bothAreFound(low, high);
        map.remove(low, low.address, low.byteSize);
        low = put(BASE + 256, SLOT);
        bothAreFound(low, high);
    }

    @Test
    void aRegionThatGoesLeavesItsNeighbourInTheSharedSlot() {
        AddressRange low = put(BASE + 256, SLOT);
        AddressRange high = put(BASE + 256 + SLOT, SLOT);
        map.remove(high, high.address, high.byteSize);
        assertThat(map.find(high.address - 1)).isSameAs(low);
        assertThat(map.find(high.end() - 1)).isNull();
    }

    @Test
    void nothingIsFoundWhereARangeWentFromASharedSlot() {
        AddressRange low = put(BASE + 256, SLOT);
        AddressRange high = put(BASE + 256 + SLOT, SLOT);
        map.remove(low, low.address, low.byteSize);
        assertThat(map.find(high.address - 1)).isNull();
        assertThat(map.find(high.address)).isSameAs(high);
        map.remove(low, low.address, low.byteSize); // again changes nothing
        assertThat(map.find(high.address)).isSameAs(high);
    }

    private void bothAreFound(AddressRange low, AddressRange high) {
        assertThat(map.find(low.address)).isSameAs(low);
        assertThat(map.find(low.end() - 1)).isSameAs(low);
        assertThat(map.find(high.address)).isSameAs(high);
        assertThat(map.find(high.end() - 1)).isSameAs(high);
    }

    private AddressRange put(long address, long byteSize) {
        AddressRange range = TestContext.segment(address, byteSize, false, map);
        map.put(range, address, byteSize);
        return range;
    }
}
