package io.cistern.caching.internal.heap;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.cistern.caching.OneGpu;
import io.cistern.caching.internal.shard.Shard;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.Z_Result;

/// Who has a live address finds its region while another one comes that shares its slot.
@JCStressTest
@Outcome(id = "true", expect = ACCEPTABLE, desc = "found")
@Outcome(expect = FORBIDDEN, desc = "none or another one")
@State
public class NeighbourComes {
    private static final long START = 5L << 30;
    private static final long BYTE_SIZE = 3L << 20;
    private static final Shard SHARD = OneGpu.shard(7);

    private final AddressRangeMap map = new AddressRangeMap();
    private final AddressRange live = OneGpu.segment(SHARD, START, BYTE_SIZE);
    private final AddressRange next = OneGpu.segment(SHARD, live.end(), BYTE_SIZE);

    /// Begins with one region.
    public NeighbourComes() {
        map.put(live, live.address, BYTE_SIZE);
    }

    @Actor
    public void comes() {
        map.put(next, next.address, BYTE_SIZE);
    }

    @Actor
    public void looks(Z_Result result) {
        result.r1 = map.find(live.end() - 1) == live;
    }
}
