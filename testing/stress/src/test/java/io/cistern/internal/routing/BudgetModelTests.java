package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/// Limits are exact: whatever threads leased in advance, an allocation is refused if and only if it does not fit.
///
/// Each block is freed once here. A second free, which is refused, tells that the first has begun and not that its
/// bytes are back: of two frees of a block [OwnerModelTests] tells.
@Param(name = "size", gen = IntGen.class, conf = "0:2")
@Param(name = "block", gen = IntGen.class, conf = "0:1")
public class BudgetModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    /// The small one is leased for; with any block beside it, the others fit to the last byte or not at all.
    private static final int[] SIZES = {5, 200, 240};

    private final Budget process = new Budget("process", 840, null);
    private final Budgets first = Budgets.of(null, new Budget("first", 640, process));
    private final Budgets second = Budgets.of(null, new Budget("second", 640, process));
    private final Router router = new Router();
    private final Route[] routes = {
        router.routes().open("first", 0, new Fresh(1 << 20), first, () -> {}),
        router.routes().open("second", 1, new Fresh(1 << 21), second, () -> {})
    };
    private final long[] blocks = {router.allocate(routes[0], 200, 0), router.allocate(routes[1], 200, 0)};

    @Operation
    public boolean allocate(@Param(name = "block") int route, @Param(name = "size") int size) {
        try {
            router.allocate(routes[route], SIZES[size], 0);
            return true;
        } catch (DeviceOutOfMemoryException full) {
            return false;
        }
    }

    @Operation(runOnce = true)
    public void freeFirst() {
        router.free(blocks[0], 0);
    }

    @Operation(runOnce = true)
    public void freeSecond() {
        router.free(blocks[1], 0);
    }

    @Test
    void areExactInEveryInterleaving() {
        Interleavings.explore(BudgetModelTests.class);
    }

    @Test
    void areExactUnderRealThreads() {
        Interleavings.race(BudgetModelTests.class);
    }

    /// Gives each block new addresses, so that a second free of a block never hits another.
    private static final class Fresh implements DeviceAllocator {
        private long next;

        Fresh(long base) {
            next = base;
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            next += 256;
            return next;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
