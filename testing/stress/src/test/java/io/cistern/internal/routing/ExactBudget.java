package io.cistern.internal.routing;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.cistern.errors.DeviceOutOfMemoryException;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZJ_Result;

/// A limit of 640 bytes is exact: one thread spends its lease on blocks of 5 bytes and keeps the last, the
/// other asks for all 640, which recalls the lease. Exactly one of the two has what it asked for last.
@JCStressTest
@Outcome(id = "true, false, 5", expect = ACCEPTABLE, desc = "the small block is there")
@Outcome(id = "false, true, 640", expect = ACCEPTABLE, desc = "the large block is there")
@Outcome(expect = FORBIDDEN, desc = "the limit exceeded, or what fits refused")
@State
public class ExactBudget {
    private static final Router ROUTER = new Router();
    private static final int LIMIT = 640;

    private final Budget budget = new Budget("limit", LIMIT, null);
    private final Route route =
            ROUTER.routes().open("budget", 0, RecycledAddresses.ALL, Budgets.of(null, budget), () -> {});
    private long kept;
    private long large;

    private long allocate(long byteSize) {
        try {
            return ROUTER.allocate(route, byteSize, 0);
        } catch (DeviceOutOfMemoryException full) {
            return 0;
        }
    }

    @Actor
    public void small(ZZJ_Result result) {
        ROUTER.free(allocate(5), 0);
        ROUTER.free(allocate(5), 0);
        kept = allocate(5);
        result.r1 = kept != 0;
    }

    @Actor
    public void large(ZZJ_Result result) {
        large = allocate(LIMIT);
        result.r2 = large != 0;
    }

    @Arbiter
    public void afterwards(ZZJ_Result result) {
        result.r3 = budget.usedBytes();
        ROUTER.free(kept, 0);
        ROUTER.free(large, 0);
        ROUTER.routes().close(route);
    }
}
