package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.UnknownAddressException;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Each block is freed once however many try, while others come and go in the slots beside it; closing lets all that
/// is under way end, refuses what comes after, and ends the allocator once, with the last block.
@Param(name = "block", gen = IntGen.class, conf = "0:1")
public class OwnerModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private final Router router = new Router();
    private final Addresses lasting = new Addresses(1 << 20, 2);
    private final Addresses passing = new Addresses(1 << 21, 3);
    private final Route lastingRoute = router.routes().open("lasting", 0, lasting, null, lasting::close);
    private final Route passingRoute = router.routes().open("passing", 1, passing, null, passing::close);
    private final long[] blocks = {router.allocate(lastingRoute, 100, 0), router.allocate(lastingRoute, 200, 0)};
    private final boolean[] freed = new boolean[2];
    private boolean closed;

    @Operation
    public boolean free(@Param(name = "block") int block) {
        try {
            router.free(blocks[block], 0);
            freed[block] = true;
            return true;
        } catch (UnknownAddressException alreadyFreed) {
            return false;
        }
    }

    @Operation
    public boolean pair() {
        long address = router.allocate(passingRoute, 300, 0);
        if (address == Router.REFUSED) {
            return false;
        }
        router.free(address, 0);
        return true;
    }

    @Operation(runOnce = true)
    public void close() {
        router.routes().close(lastingRoute);
        router.routes().close(passingRoute);
        closed = true;
    }

    @Validate
    public void endsWithTheLastBlock() {
        require(lasting.isClosed() == (closed && freed[0] && freed[1]), "the allocator with lasting blocks");
        require(passing.isClosed() == closed, "the allocator with passing blocks");
        long live = (freed[0] ? 0 : 1) + (freed[1] ? 0 : 1);
        RouteStatistics counted = lastingRoute.statistics();
        require(counted.allocations() - counted.frees() == live, "live blocks");
        require(passingRoute.statistics().requestedBytes() == 0, "requested bytes");
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    @Test
    void freesOnceAndEndsOnceInEveryInterleaving() {
        Interleavings.explore(OwnerModelTests.class);
    }

    @Test
    void freesOnceAndEndsOnceUnderRealThreads() {
        Interleavings.race(OwnerModelTests.class);
    }
}
