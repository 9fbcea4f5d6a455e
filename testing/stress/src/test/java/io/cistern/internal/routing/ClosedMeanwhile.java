package io.cistern.internal.routing;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZII_Result;

/// What a swap does to the allocator that was current: an allocation gets in before it closes, or is refused; nobody
/// calls it after its end, and it ends once, with its last block.
@JCStressTest
@Outcome(id = "true, 1, 0", expect = ACCEPTABLE, desc = "served before the end")
@Outcome(id = "false, 1, 0", expect = ACCEPTABLE, desc = "refused, for the next allocator to serve")
@Outcome(expect = FORBIDDEN, desc = "ended twice or never, or called after its end")
@State
public class ClosedMeanwhile {
    private static final Router ROUTER = new Router();

    private final AtomicInteger ends = new AtomicInteger();
    private final AtomicInteger late = new AtomicInteger();
    private final Route route = ROUTER.routes().open("closed", 0, new Ending(), null, ends::incrementAndGet);
    private final long earlier = ROUTER.allocate(route, 100, 0);

    @Actor
    public void pairAndFree(ZII_Result result) {
        long address = ROUTER.allocate(route, 100, 0);
        result.r1 = address != Router.REFUSED;
        if (result.r1) {
            ROUTER.free(address, 0);
        }
        ROUTER.free(earlier, 0);
    }

    @Actor
    public void close() {
        ROUTER.routes().close(route);
    }

    @Arbiter
    public void afterwards(ZII_Result result) {
        result.r2 = ends.get();
        result.r3 = late.get();
    }

    /// Counts calls that come after the end.
    private final class Ending implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            late.addAndGet(ends.get());
            return RecycledAddresses.ALL.allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            late.addAndGet(ends.get());
            RecycledAddresses.ALL.free(address, byteSize, device, stream);
        }
    }
}
