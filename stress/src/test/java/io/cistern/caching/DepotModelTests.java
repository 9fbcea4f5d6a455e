package io.cistern.caching;

import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Each block is in one place whoever leaves, takes and empties: in the depot or in one thread's hands.
@Param(name = "lane", gen = IntGen.class, conf = "0:1")
@Param(name = "block", gen = IntGen.class, conf = "1:4")
public class DepotModelTests {
    private static final long BYTE_SIZE = 1024;
    private static final int SIZE_CLASS = SizeClasses.of(BYTE_SIZE);
    private static final int BLOCKS = 4;
    private static final int OUTSIDE = 0;
    private static final int INSIDE = 1;

    private final Depot depot = OneGpu.shard(7).depot;
    private final Lane[] lanes = {lane(), lane()};
    private final AtomicIntegerArray places = new AtomicIntegerArray(BLOCKS + 1);

    /// Begins with a shelf that the first lane misses.
    public DepotModelTests() {
        depot.take(lanes[0], SIZE_CLASS, 1, new AddressBatch());
    }

    private static Lane lane() {
        return new Lane(0, true, Lane.LARGEST_KEPT, new DeviceCounters(Long.MAX_VALUE));
    }

    /// Leaves a block that is in nobody's hands but its own.
    @Operation
    public void leave(@Param(name = "lane") int lane, @Param(name = "block") int block) {
        if (places.compareAndSet(block, OUTSIDE, INSIDE)
                && depot.leave(lanes[lane], SIZE_CLASS, new long[] {block}, 0, 1) == 0) {
            require(places.compareAndSet(block, INSIDE, OUTSIDE), "a block that was not left");
        }
    }

    @Operation
    public void take(@Param(name = "lane") int lane, @Param(name = "block") int wanted) {
        AddressBatch taken = new AddressBatch();
        depot.take(lanes[lane], SIZE_CLASS, wanted, taken);
        require(taken.count <= wanted, "more than was wanted");
        out(taken);
    }

    @Operation
    public void empty() {
        AddressBatch taken = new AddressBatch();
        depot.empty(taken);
        out(taken);
    }

    private void out(AddressBatch taken) {
        for (int i = 0; i < taken.count; i++) {
            require(places.compareAndSet((int) taken.addresses[i], INSIDE, OUTSIDE), "a block that was not there");
        }
    }

    @Validate
    public void countsWhatIsThere() {
        long inside = 0;
        for (int block = 1; block <= BLOCKS; block++) {
            inside += places.get(block) == INSIDE ? 1 : 0;
        }
        require(depot.bytes() == inside * BYTE_SIZE, "bytes of the depot");
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    @Test
    void noBlockIsLostOrDoubledInAnyInterleaving() {
        Interleavings.explore(DepotModelTests.class);
    }

    @Test
    void noBlockIsLostOrDoubledUnderRealThreads() {
        Interleavings.race(DepotModelTests.class);
    }
}
