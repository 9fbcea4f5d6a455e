package io.cistern.caching;

import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// Who has a live address finds its region without a lock, from its first byte to its last, while neighbours that
/// share slots with it come and go.
@Param(name = "region", gen = IntGen.class, conf = "0:2")
public final class RegionMapModelTests {
    private static final long START = 5L << 30;
    /// One and a quarter slots: each shares one with the next.
    private static final long BYTE_SIZE = 5L << 19;
    private static final int REGIONS = 3;
    private static final int GONE = 0;
    private static final int CHANGING = 1;
    private static final int LIVE = 2;
    private static final int HELD = 3;

    private final RegionMap map = new RegionMap();
    private final StreamShard shard = OneGpu.shard(7);
    private final Region[] regions = new Region[REGIONS];
    private final AtomicIntegerArray states = new AtomicIntegerArray(REGIONS);

    /// Begins with the outer ones.
    public RegionMapModelTests() {
        change(0);
        change(2);
    }

    /// Comes if it is gone, and else goes, but not while somebody has an address in it.
    @Operation
    public void change(@Param(name = "region") int region) {
        if (states.compareAndSet(region, GONE, CHANGING)) {
            regions[region] = OneGpu.segment(shard, START + region * BYTE_SIZE, BYTE_SIZE);
            map.put(regions[region], regions[region].address, BYTE_SIZE);
            states.set(region, LIVE);
        } else if (states.compareAndSet(region, LIVE, CHANGING)) {
            map.remove(regions[region], regions[region].address, BYTE_SIZE);
            states.set(region, GONE);
        }
    }

    @Operation
    public void find(@Param(name = "region") int region) {
        if (states.compareAndSet(region, LIVE, HELD)) {
            Region live = regions[region];
            for (long at : new long[] {live.address, live.address + BYTE_SIZE / 2, live.end() - 1}) {
                BlockPlaces.require(map.find(at) == live, "another region, or none");
            }
            states.set(region, LIVE);
        }
    }

    @Test
    void aLiveAddressIsFoundInEveryInterleaving() {
        Interleavings.explore(RegionMapModelTests.class, 5);
    }

    @Test
    void aLiveAddressIsFoundUnderRealThreads() {
        Interleavings.race(RegionMapModelTests.class);
    }
}
