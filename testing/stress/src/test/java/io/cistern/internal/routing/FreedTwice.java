package io.cistern.internal.routing;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.cistern.errors.UnknownAddressException;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZJ_Result;

/// Of two frees of a block one succeeds, and the block is counted once, while its neighbours in the owner table
/// come and go.
@JCStressTest
@Outcome(id = "true, false, 0", expect = ACCEPTABLE, desc = "the first frees it")
@Outcome(id = "false, true, 0", expect = ACCEPTABLE, desc = "the second frees it")
@Outcome(expect = FORBIDDEN, desc = "freed twice, or not at all")
@State
public class FreedTwice {
    private static final Router ROUTER = new Router();

    private final Route route = ROUTER.routes().open("twice", 0, RecycledAddresses.ALL, null, () -> {});
    private final long block = ROUTER.allocate(route, 100, 0);

    static boolean free(Router router, long address) {
        try {
            router.free(address, 0);
            return true;
        } catch (UnknownAddressException freedBefore) {
            return false;
        }
    }

    @Actor
    public void first(ZZJ_Result result) {
        result.r1 = free(ROUTER, block);
    }

    @Actor
    public void second(ZZJ_Result result) {
        result.r2 = free(ROUTER, block);
    }

    @Arbiter
    public void afterwards(ZZJ_Result result) {
        RouteStatistics counted = route.statistics();
        result.r3 = counted.allocations() - counted.frees();
        ROUTER.routes().close(route);
    }
}
