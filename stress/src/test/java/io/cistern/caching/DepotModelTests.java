package io.cistern.caching;

import io.cistern.internal.routing.Interleavings;
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

    private final Depot depot = OneGpu.shard(7).depot;
    private final Lane[] lanes = {lane(), lane()};
    private final BlockPlaces places = new BlockPlaces(BLOCKS);

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
        if (places.tryIn(block) && depot.leave(lanes[lane], SIZE_CLASS, new long[] {block}, 0, 1) == 0) {
            places.out(block);
        }
    }

    @Operation
    public void take(@Param(name = "lane") int lane, @Param(name = "block") int wanted) {
        AddressBatch taken = new AddressBatch();
        depot.take(lanes[lane], SIZE_CLASS, wanted, taken);
        BlockPlaces.require(taken.count <= wanted, "more than was wanted");
        places.out(taken);
    }

    @Operation
    public void empty() {
        AddressBatch taken = new AddressBatch();
        depot.empty(taken);
        places.out(taken);
    }

    @Validate
    public void countsWhatIsThere() {
        BlockPlaces.require(depot.bytes() == places.inside() * BYTE_SIZE, "bytes of the depot");
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
