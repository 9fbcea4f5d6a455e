package io.cistern.internal.routing;

import io.cistern.cuda.process.ProcessFence;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.junit.jupiter.api.Test;

/// A block is found until its free, while the part of the table that it lies in leaves and is made again: each new part
/// drives out those without blocks.
@Param(name = "thread", gen = ThreadIdGen.class)
@Param(name = "chunk", gen = IntGen.class, conf = "0:2")
public class LeavingChunkModelTests {
    private static final long CHUNK_BYTES = 128 << 10;
    private static final int ROUTE = 0;

    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private final OwnerTable table = new OwnerTable(0, 2);

    /// Allocates and frees a block of the thread's own, beside those of the others.
    @Operation
    public boolean pair(@Param(name = "thread") int thread, @Param(name = "chunk") int chunk) {
        long address = (1L << 40) + chunk * CHUNK_BYTES + thread * 4096L;
        boolean isRecorded = table.insert(address, 300, ROUTE);
        boolean isFound = table.ownerOf(address) != OwnerTable.NONE;
        return isRecorded && isFound && table.remove(address, 0, LeavingChunkModelTests::free);
    }

    private static boolean free(Route route, long owner, long[] chunk, int at, long address, long stream) {
        return OwnerTable.take(chunk, at, address) != OwnerTable.NONE;
    }

    @Test
    void aBlockIsFoundInEveryInterleaving() {
        Interleavings.explore(LeavingChunkModelTests.class);
    }

    @Test
    void aBlockIsFoundUnderRealThreads() {
        Interleavings.race(LeavingChunkModelTests.class);
    }
}
