package io.cistern.caching.internal.heap;

import io.cistern.caching.BlockPlaces;
import io.cistern.caching.OneGpu;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// Who has a live address finds its region without a lock, from its first byte to its last, while neighbours that
/// share slots with it come and go.
@Param(name = "region", gen = IntGen.class, conf = "0:2")
public final class AddressRangeMapModelTests {
    private static final long START = 5L << 30;
    /// One and a quarter slots: each shares one with the next.
    private static final long BYTE_SIZE = 5L << 19;
    private static final int REGIONS = 3;
    private static final int GONE = 0;
    private static final int CHANGING = 1;
    private static final int LIVE = 2;
    private static final int HELD = 3;

    private final AddressRangeMap map = new AddressRangeMap();
    private final Shard shard = OneGpu.shard(7);
    private final AddressRange[] ranges = new AddressRange[REGIONS];
    private final AtomicIntegerArray states = new AtomicIntegerArray(REGIONS);

    /// Begins with the outer ones.
    public AddressRangeMapModelTests() {
        change(0);
        change(2);
    }

    /// Comes if it is gone, and else goes, but not while somebody has an address in it.
    @Operation
    public void change(@Param(name = "region") int range) {
        if (states.compareAndSet(range, GONE, CHANGING)) {
            ranges[range] = OneGpu.segment(shard, START + range * BYTE_SIZE, BYTE_SIZE);
            map.put(ranges[range], ranges[range].address, BYTE_SIZE);
            states.set(range, LIVE);
        } else if (states.compareAndSet(range, LIVE, CHANGING)) {
            map.remove(ranges[range], ranges[range].address, BYTE_SIZE);
            states.set(range, GONE);
        }
    }

    @Operation
    public void find(@Param(name = "region") int range) {
        if (states.compareAndSet(range, LIVE, HELD)) {
            AddressRange live = ranges[range];
            for (long at : new long[] {live.address, live.address + BYTE_SIZE / 2, live.end() - 1}) {
                BlockPlaces.require(map.find(at) == live, "another region, or none");
            }
            states.set(range, LIVE);
        }
    }

    @Test
    void aLiveAddressIsFoundInEveryInterleaving() {
        Interleavings.explore(AddressRangeMapModelTests.class, 5);
    }

    @Test
    void aLiveAddressIsFoundUnderRealThreads() {
        Interleavings.race(AddressRangeMapModelTests.class);
    }
}
