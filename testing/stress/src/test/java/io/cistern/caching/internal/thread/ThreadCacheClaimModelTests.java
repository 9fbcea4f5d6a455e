package io.cistern.caching.internal.thread;

import io.cistern.caching.BlockPlaces;
import io.cistern.caching.OneGpu;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.process.ProcessFence;
import io.cistern.internal.routing.Interleavings;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// One thread takes blocks out of its thread cache and puts them in, while another empties it: each block is in
/// one place, and the owner that finds its thread cache claimed does without it.
@Param(name = "block", gen = IntGen.class, conf = "1:3")
public class ThreadCacheClaimModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private static final long STREAM = 7;
    private static final long BYTE_SIZE = 1024;
    private static final int BLOCKS = 3;

    private final Shard shard = OneGpu.shard(STREAM);
    private final ThreadCache threadCache = new ThreadCache(true, 1 << 20, OneGpu.counters());
    private final BlockPlaces places = new BlockPlaces(BLOCKS);

    /// Begins with the stream's bins.
    public ThreadCacheClaimModelTests() {
        threadCache.changeTo(shard, STREAM, new AddressBatch());
    }

    @Operation(nonParallelGroup = "owner")
    public void keep(@Param(name = "block") int block) {
        AddressBatch evicted = new AddressBatch();
        if (!places.tryIn(block)) {
            return;
        }
        if (threadCache.tryEnter()) {
            threadCache.keep(threadCache.last, block, BYTE_SIZE, evicted);
            threadCache.leave();
        } else {
            evicted.add(block);
        }
        places.out(evicted);
    }

    @Operation(nonParallelGroup = "owner")
    public void take() {
        AddressBatch taken = new AddressBatch();
        long address = threadCache.take(BYTE_SIZE, STREAM);
        if (address != 0) {
            taken.add(address);
        }
        places.out(taken);
    }

    @Operation(nonParallelGroup = "others")
    public void empty() {
        AddressBatch evicted = new AddressBatch();
        threadCache.claim();
        ProcessFence.everywhere();
        threadCache.awaitClaim();
        threadCache.evict(shard, evicted);
        threadCache.unclaim();
        places.out(evicted);
    }

    @Validate
    public void countsWhatIsThere() {
        BlockPlaces.require(threadCache.bytesOf(shard) == places.inside() * BYTE_SIZE, "bytes of the thread cache");
    }

    @Test
    void noBlockIsLostOrDoubledInAnyInterleaving() {
        Interleavings.explore(ThreadCacheClaimModelTests.class);
    }

    @Test
    void noBlockIsLostOrDoubledUnderRealThreads() {
        Interleavings.race(ThreadCacheClaimModelTests.class);
    }
}
