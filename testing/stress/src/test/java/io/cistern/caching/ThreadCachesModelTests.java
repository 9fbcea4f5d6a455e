package io.cistern.caching;

import io.cistern.cuda.process.ProcessFence;
import io.cistern.internal.routing.Interleavings;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Test;

/// Threads allocate from their thread caches and free what others allocated while somebody empties all thread
/// caches: no block is in two hands, a slot is one register, and what is counted is what is there. Under real
/// threads only: the model checker cannot follow the records that the options are.
@Param(name = "slot", gen = IntGen.class, conf = "0:1")
public final class ThreadCachesModelTests {
    static {
        ProcessFence.everywhere(); // links it before the model checker looks on
    }

    private static final long STREAM = 7;
    private static final long[] SIZES = {1024, 2L << 20};

    private final CachingAllocator caching = OneGpu.open();
    private final AtomicLongArray slots = new AtomicLongArray(SIZES.length);
    private final ConcurrentHashMap<Long, Integer> inHands = new ConcurrentHashMap<>();

    /// Begins with a block of each size in the thread cache of this thread.
    public ThreadCachesModelTests() {
        for (int slot = 0; slot < SIZES.length; slot++) {
            allocate(slot);
            free(slot);
        }
    }

    /// Puts a block into a slot, or back if there is one already.
    @Operation
    public boolean allocate(@Param(name = "slot") int slot) {
        long address = caching.allocate(SIZES[slot], 0, STREAM);
        BlockPlaces.require(inHands.put(address, slot) == null, "a block in two hands");
        if (slots.compareAndSet(slot, 0, address)) {
            return true;
        }
        giveBack(slot, address);
        return false;
    }

    @Operation
    public boolean free(@Param(name = "slot") int slot) {
        long address = slots.getAndSet(slot, 0);
        if (address != 0) {
            giveBack(slot, address);
        }
        return address != 0;
    }

    private void giveBack(int slot, long address) {
        BlockPlaces.require(inHands.remove(address, slot), "a block in no hand");
        caching.free(address, SIZES[slot], 0, STREAM);
    }

    @Operation
    public void empty() {
        caching.cache(0).threadCaches.empty(caching.cache(0).shards.all());
    }

    @Validate
    public void countsWhatIsThere() {
        caching.checkInvariants();
        long live = 0;
        for (int slot = 0; slot < SIZES.length; slot++) {
            live += slots.get(slot) != 0 ? SIZES[slot] : 0;
        }
        BlockPlaces.require(
                caching.statistics(0).getOrDefault("allocated_bytes.all.current", -1L) == live, "allocated bytes");
        BlockPlaces.require(
                caching.statistics(0).getOrDefault("requested_bytes.all.current", -1L) == live, "requested bytes");
    }

    @Test
    void noBlockIsInTwoHandsUnderRealThreads() {
        Interleavings.race(ThreadCachesModelTests.class);
    }
}
