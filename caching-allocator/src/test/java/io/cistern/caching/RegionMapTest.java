package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class RegionMapTest {
    private static final long SLOT = 2 << 20;
    private static final long BASE = 5L << 40;

    private final RegionMap map = new RegionMap();

    @Test
    void anAddressLeadsToItsRegion() {
        Region region = put(BASE, 3 * SLOT);
        assertThat(map.find(BASE)).isSameAs(region);
        assertThat(map.find(BASE + 3 * SLOT - 1)).isSameAs(region);
        assertThat(map.find(BASE + 3 * SLOT)).isNull();
        assertThat(map.find(BASE - 1)).isNull();
    }

    @Test
    void anAddressNoGpuHasIsInNoRegion() {
        assertThat(map.find(-1)).isNull();
        assertThat(map.find(Long.MIN_VALUE)).isNull();
        assertThat(map.find(0)).isNull();
    }

    @Test
    void twoRegionsMayShareASlotWhicheverComesFirst() {
        Region low = put(BASE + 256, SLOT);
        Region high = put(BASE + 256 + SLOT, SLOT);
        bothAreFound(low, high);
        map.remove(low, low.address, low.byteSize);
        low = put(BASE + 256, SLOT);
        bothAreFound(low, high);
    }

    @Test
    void aRegionThatGoesLeavesItsNeighbourInTheSharedSlot() {
        Region low = put(BASE + 256, SLOT);
        Region high = put(BASE + 256 + SLOT, SLOT);
        map.remove(high, high.address, high.byteSize);
        assertThat(map.find(high.address - 1)).isSameAs(low);
        assertThat(map.find(high.end() - 1)).isNull();
    }

    private void bothAreFound(Region low, Region high) {
        assertThat(map.find(low.address)).isSameAs(low);
        assertThat(map.find(low.end() - 1)).isSameAs(low);
        assertThat(map.find(high.address)).isSameAs(high);
        assertThat(map.find(high.end() - 1)).isSameAs(high);
    }

    private Region put(long address, long byteSize) {
        Region region = TestContext.segment(address, byteSize, false, map);
        map.put(region, address, byteSize);
        return region;
    }
}
