package io.cistern.caching.internal.shard;

import io.cistern.caching.BlockPlaces;
import io.cistern.caching.OneGpu;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.internal.routing.Interleavings;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Each block is in one place whoever leaves, takes and empties: in the transfer cache or in one thread's hands.
@Param(name = "thread cache", gen = IntGen.class, conf = "0:1")
@Param(name = "block", gen = IntGen.class, conf = "1:4")
public class TransferCacheModelTests {
    private static final long BYTE_SIZE = 1024;
    private static final int SIZE_CLASS = Sizes.classOf(BYTE_SIZE);
    private static final int BLOCKS = 4;

    private final TransferCache transferCache = OneGpu.shard(7).transferCache;
    private final ThreadCache[] threadCaches = {threadCache(), threadCache()};
    private final BlockPlaces places = new BlockPlaces(BLOCKS);

    /// Begins with a shelf that the first thread cache misses.
    public TransferCacheModelTests() {
        transferCache.take(threadCaches[0], SIZE_CLASS, 1, new AddressBatch());
    }

    private static ThreadCache threadCache() {
        return new ThreadCache(true, 1 << 20, OneGpu.counters());
    }

    /// Leaves a block that is in nobody's hands but its own.
    @Operation
    public void leave(@Param(name = "thread cache") int threadCache, @Param(name = "block") int block) {
        if (places.tryIn(block)
                && transferCache.leave(threadCaches[threadCache], SIZE_CLASS, new long[] {block}, 0, 1) == 0) {
            places.out(block);
        }
    }

    @Operation
    public void take(@Param(name = "thread cache") int threadCache, @Param(name = "block") int wanted) {
        AddressBatch taken = new AddressBatch();
        transferCache.take(threadCaches[threadCache], SIZE_CLASS, wanted, taken);
        BlockPlaces.require(taken.count <= wanted, "more than was wanted");
        places.out(taken);
    }

    @Operation
    public void empty() {
        AddressBatch taken = new AddressBatch();
        transferCache.empty(taken);
        places.out(taken);
    }

    @Validate
    public void countsWhatIsThere() {
        BlockPlaces.require(transferCache.bytes() == places.inside() * BYTE_SIZE, "bytes of the transfer cache");
    }

    @Test
    void noBlockIsLostOrDoubledInAnyInterleaving() {
        Interleavings.explore(TransferCacheModelTests.class);
    }

    @Test
    void noBlockIsLostOrDoubledUnderRealThreads() {
        Interleavings.race(TransferCacheModelTests.class);
    }
}
