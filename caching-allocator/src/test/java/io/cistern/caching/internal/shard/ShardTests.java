package io.cistern.caching.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.CacheStat;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageArena;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.internal.threads.HeldLock;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// What a shard counts, lends, claims and gives back, and to whom it passes.
final class ShardTests extends PagesFixture {
    private long counted(CacheStat stat) {
        long[] count = {0};
        shard.withCounters(counters -> count[0] = counters.gauge(stat).current());
        return count[0];
    }

    private long hits() {
        long[] hits = {0};
        shard.withCounters(counters -> hits[0] = counters.hits);
        return hits[0];
    }

    private PageArena arena(long address) {
        return (PageArena) range(address);
    }

    // Allocations.

    @Test
    void aRequestCountsWhenItIsServed() {
        assertThat(shard.allocate(PAGE, 100)).isZero();
        assertThat(hits()).isZero();
        assertThat(counted(CacheStat.REQUESTED_BYTES)).isZero();
        free(grow(shard, 1));
        long found = shard.allocate(PAGE, 100);
        assertThat(hits()).isEqualTo(1);
        assertThat(counted(CacheStat.REQUESTED_BYTES)).isEqualTo(100);
        assertThat(shard.reservedBytes()).isEqualTo(PAGE);
        assertThat(shard.liveBytes()).isEqualTo(PAGE);
        shard.free(range(found), found, 100, shard.key, uses);
        assertThat(counted(CacheStat.REQUESTED_BYTES)).isZero();
        assertThat(shard.liveBytes()).isZero();
    }

    @Test
    void manyBlocksComeAtOnceTheLowestLast() {
        long address = grow(shard, 1);
        free(address);
        AddressBatch batch = new AddressBatch();
        batch.add(1);
        shard.allocateMany(PAGE / 4, 100, 3, batch);
        assertThat(batch.count).isEqualTo(4);
        assertThat(batch.addresses).startsWith(address + PAGE / 2, address + PAGE / 4, address, 1);
        assertThat(hits()).isEqualTo(1);
        assertThat(counted(CacheStat.REQUESTED_BYTES)).isEqualTo(100);
    }

    @Test
    void asManyBlocksComeAsAreFree() {
        free(grow(shard, 1));
        AddressBatch batch = new AddressBatch();
        shard.allocateMany(PAGE / 2, 100, 3, batch);
        assertThat(batch.count).isEqualTo(2);
        shard.allocateMany(PAGE / 2, 100, 3, batch);
        assertThat(batch.count).isEqualTo(2);
        assertThat(hits()).isEqualTo(1);
        assertThat(counted(CacheStat.REQUESTED_BYTES)).isEqualTo(100);
    }

    @Test
    void aBlockIsLiveWithItsSizeUntilItIsFreed() {
        long block = grow(shard, 2);
        assertThat(shard.isLive(block, 2 * PAGE)).isTrue();
        assertThat(shard.isLive(block, PAGE)).isFalse();
        assertThat(shard.isLive(block + PAGE, PAGE)).isFalse();
        assertThat(shard.largestFreeBytes()).isZero();
        free(block);
        assertThat(shard.isLive(block, 2 * PAGE)).isFalse();
        assertThat(shard.largestFreeBytes()).isEqualTo(2 * PAGE);
    }

    /// A page for them has the smallest size, so a larger run does not help.
    @Test
    void smallBlocksDoNotWaitForPagesToComeBack() {
        Shard small = newShard(0x1000, true);
        assertThat(small.isSmall()).isTrue();
        assertThat(shard.isSmall()).isFalse();
        long[] blocks = fill(small, 6);
        long taken = lend(blocks[1], other);
        free(taken, blocks[0], blocks[3], blocks[4], blocks[5]);
        assertThat(small.allocate(2 * PAGE, 0)).isEqualTo(blocks[3]);
        small.checkInvariants();
    }

    // Frees that wait.

    @Test
    void aFreeIsDueForPollingOnlyWhileItWaits() {
        long block = grow(shard, 1);
        assertThat(shard.settlingIsDue()).isFalse();
        order.busy.add(other.key);
        freeOn(other.key, block);
        assertThat(shard.settlingIsDue()).isTrue();
        shard.trySettle(fences);
        assertThat(shard.driverLock.isLocked()).isFalse();
        assertThat(shard.settlingIsDue()).as("polled just now").isFalse();
        order.busy.clear();
        assertThat(shard.settle(fences)).isEqualTo(PAGE);
        assertThat(shard.settlingIsDue()).isFalse();
        assertThat(order.openFences()).isZero();
    }

    // Pages that leave and come.

    private boolean lend(Mapping home, Shard taker) {
        try (HeldLock _ = table.hold()) {
            return shard.takePage(home, taker);
        }
    }

    private void returnPage(Mapping home, Shard taker) {
        try (HeldLock _ = table.hold()) {
            shard.returnPage(home, taker);
        }
    }

    @Test
    void onlyAnIdlePageIsLent() {
        long block = grow(shard, 1);
        Mapping home = mapping(block);
        assertThat(lend(home, other)).as("live").isFalse();
        long taken = lend(block, other);
        assertThat(lend(home, other)).as("at home elsewhere").isFalse();
        free(taken);
        assertThat(mapping(taken).idle).isTrue();
        other.marks.kept = false;
        try (HeldLock _ = table.hold()) {
            assertThat(other.takePage(mapping(taken), shard)).as("nobody knows").isFalse();
        }
    }

    @Test
    void aPageThatIsLentLeavesTheReservedBytesOfItsShard() {
        long block = grow(shard, 3);
        free(block);
        Mapping middle = mapping(block + PAGE);
        assertThat(lend(middle, other)).isTrue();
        assertThat(shard.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(shard.allocate(2 * PAGE, 0)).isZero();
        returnPage(middle, other);
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
        assertThat(lend(middle, shard)).isTrue();
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
        returnPage(middle, shard);
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
        assertThat(shard.allocate(3 * PAGE, 0)).isEqualTo(block);
    }

    @Test
    void aPageMayBeIdleIfItsMarkSaysSoOrNoneIsKept() {
        long block = grow(shard, 1);
        Mapping home = mapping(block);
        assertThat(shard.mayBeIdle(home)).as("live").isFalse();
        free(block);
        assertThat(shard.mayBeIdle(home)).isTrue();
        table.pin(block, PAGE, Page.Pin.CAPTURED);
        assertThat(shard.mayBeIdle(home)).as("pinned").isFalse();
        shard.marks.kept = false;
        assertThat(shard.mayBeIdle(home)).as("nobody knows").isTrue();
    }

    @Test
    void onlyFreePartsAreClaimedAndAllOrNone() {
        long block = grow(shard, 4);
        free(block);
        PageArena arena = arena(block);
        int[] parts = new int[2];
        long[] froms = {block, block + 2 * PAGE};
        long[] tos = {block + PAGE, block + 4 * PAGE};
        assertThat(shard.claimFree(arena, froms, tos, parts)).isTrue();
        assertThat(shard.allocate(2 * PAGE, 0)).as("claimed").isZero();
        long between = shard.allocate(PAGE, 0);
        assertThat(between).isEqualTo(block + PAGE);
        shard.freeClaimed(parts);
        assertThat(shard.allocate(2 * PAGE, 0)).isEqualTo(block + 2 * PAGE);
        assertThat(shard.claimFree(arena, froms, tos, parts)).as("in use").isFalse();
        assertThat(shard.allocate(PAGE, 0)).as("the first part is free again").isEqualTo(block);
    }

    @Test
    void aClaimedMappingIsNobodyElsesUntilItIsGivenUp() {
        long[] blocks = fill(shard, 4);
        free(lend(blocks[1], other));
        free(blocks[0]);
        Mapping aliased = mapping(blocks[1]);
        assertThat(shard.tryClaim(aliased)).isTrue();
        assertThat(shard.tryClaim(aliased)).as("twice").isFalse();
        shard.unclaim(aliased, false);
        assertThat(grow(shard, 2)).as("the page comes back").isEqualTo(blocks[0]);
    }

    @Test
    void theAddressesOfAStuckMappingAreNotUsedAgain() {
        long[] blocks = fill(shard, 4);
        free(lend(blocks[1], other));
        Mapping aliased = mapping(blocks[1]);
        assertThat(shard.tryClaim(aliased)).isTrue();
        shard.unclaim(aliased, true);
        free(blocks[0], blocks[2], blocks[3]);
        assertThat(grow(shard, 4)).isEqualTo(blocks[2]);
        assertThat(shard.tryClaim(aliased)).isTrue();
        shard.unclaim(aliased, true);
    }

    @Test
    void memoryThatSleepsIsNotReserved() {
        grow(shard, 3);
        shard.sleeps(2 * PAGE, true);
        assertThat(shard.reservedBytes()).isEqualTo(PAGE);
        shard.sleeps(2 * PAGE, false);
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
    }

    // Memory that goes back.

    @Test
    void idleMemoryGoesBackOnceItsStreamHasFinished() {
        free(grow(shard, 3));
        order.busy.add(shard.key);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isZero();
        assertThat(shard.largestFreeBytes()).isEqualTo(3 * PAGE);
        order.busy.clear();
        assertThat(shard.giveBack(PAGE, fences)).isEqualTo(PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(counters.counted(CacheEvent.DEVICE_FREE)).isEqualTo(1);
        order.busy.add(shard.key);
        assertThat(shard.giveBackAfterWaiting(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        assertThat(shard.reservedBytes()).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
    }

    @Test
    void threadsThatWaitForTheStreamDoNotKeepEachOtherOut() throws InterruptedException {
        free(grow(shard, 2));
        List<Long> returned = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Thread thread = Thread.ofPlatform().start(() -> returned.add(shard.giveBackAfterWaiting(PAGE, fences)));
            thread.join(10_000);
        }
        assertThat(returned).containsExactly(PAGE, PAGE);
    }

    @Test
    void pagesThatTheirSourceNeedsStayFree() {
        long block = grow(shard, 3);
        free(block);
        source.needed = address -> address == block + PAGE;
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(PAGE);
        assertThat(shard.largestFreeBytes()).isEqualTo(PAGE);
        source.needed = _ -> false;
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
    }

    @Test
    void pagesThatTheDriverKeepsStayFree() {
        long block = grow(shard, 3);
        free(block);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 1, 1, CudaResult.UNKNOWN);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(shard.allocate(2 * PAGE, 0)).isEqualTo(block);
    }

    @Test
    void aDeadContextIsTold() {
        long block = grow(shard, 3);
        free(block);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.LAUNCH_FAILED);
        assertThatThrownBy(() -> shard.giveBack(Long.MAX_VALUE, fences)).isInstanceOf(CudaException.class);
        assertThat(shard.driverLock.isLocked()).isFalse();
        assertThat(shard.allocate(3 * PAGE, 0)).isEqualTo(block);
    }

    /// The page has no memory that could go.
    @Test
    void onlyAddressesOfASleepingPageGoBack() {
        long block = grow(shard, 1);
        free(block);
        List<@Nullable Page> pages = new ArrayList<>();
        table.beginChange(shard, _ -> true, pages);
        Page page = mapping(block).page;
        assertThat(pages).containsExactly(page);
        gpu.virtualMemory().unmap(0, block, PAGE);
        table.physical.release(page);
        source.known.remove(block);
        page.isMapped = false;
        page.hasMemory = false;
        shard.sleeps(PAGE, true);
        table.endChange(page, true);
        assertThat(table.asleepBytes()).isEqualTo(PAGE);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isZero();
        assertThat(counters.counted(CacheEvent.DEVICE_FREE)).isZero();
        assertThat(table.asleepBytes()).isZero();
        assertThat(shard.reservedBytes()).isZero();
        assertThat(grow(shard, 1)).isEqualTo(block);
    }

    // The end of the stream.

    private boolean pass(boolean anew) {
        try (HeldLock _ = shard.holdDriver()) {
            return shard.passTo(other.timeline(), anew, table);
        }
    }

    @Test
    void aShardPassesOnceItsStreamEndedAndNothingIsInUse() {
        long[] blocks = fill(shard, 2);
        free(blocks[1]);
        assertThat(shard.isVacant()).isFalse();
        assertThat(pass(false)).as("not closed").isFalse();
        shard.closed(Fences.PASSED);
        assertThat(shard.isVacant()).as("a block is live").isFalse();
        assertThat(pass(false)).isFalse();
        order.busy.add(other.key);
        freeOn(other.key, blocks[0]);
        assertThat(shard.isVacant()).as("a block waits").isFalse();
        assertThat(pass(false)).isFalse();
        order.busy.clear();
        assertThat(shard.settle(fences)).isEqualTo(PAGE);
        assertThat(shard.isVacant()).isTrue();
        assertThat(pass(false)).isTrue();
        assertThat(shard.key).isEqualTo(other.key);
        assertThat(shard.timeline()).isSameAs(other.timeline());
        assertThat(shard.isClosed()).isFalse();
        assertThat(shard.isVacant()).isFalse();
    }

    @Test
    void aPinnedPageKeepsTheShardWithItsStream() {
        long block = grow(shard, 1);
        free(block);
        shard.closed(Fences.PASSED);
        table.pin(block, PAGE, Page.Pin.CAPTURED);
        assertThat(shard.isVacant()).isFalse();
        assertThat(pass(false)).isFalse();
        table.unpinAll(Page.Pin.CAPTURED);
        assertThat(pass(false)).isTrue();
    }

    /// A lent page belongs to its taker, which may not have published it yet.
    @Test
    void aPageInMotionKeepsTheShardWithItsStream() {
        long block = grow(shard, 1);
        free(block);
        shard.closed(Fences.PASSED);
        Mapping home = mapping(block);
        assertThat(lend(home, other)).isTrue();
        assertThat(shard.isVacant()).isFalse();
        returnPage(home, other);
        assertThat(shard.isVacant()).isTrue();
    }

    /// The former stream's work may still run, so only a later fence covers the memory.
    @Test
    void whatPassesAnewCountsAsFreedNow() {
        long[] blocks = fill(shard, 4);
        lend(blocks[1], other);
        free(blocks[0], blocks[2], blocks[3]);
        shard.closed(Fences.PASSED);
        clock.set(1000);
        assertThat(pass(true)).isTrue();
        for (long block : blocks) {
            assertThat(mapping(block).freedAt).isEqualTo(1000);
        }
    }

    @Test
    void whatPassesAfterItsWorkKeepsItsTime() {
        long[] blocks = fill(shard, 2);
        lend(blocks[0], other);
        free(blocks[1]);
        shard.closed(Fences.PASSED);
        clock.set(1000);
        assertThat(pass(false)).isTrue();
        assertThat(mapping(blocks[0]).freedAt).isLessThan(1000);
        assertThat(mapping(blocks[1]).freedAt).isLessThan(1000);
    }

    @Test
    void aShardWithMemoryKeepsItsAddresses() {
        long block = grow(shard, 1);
        assertThat(shard.dispose()).isFalse();
        free(block);
        assertThat(shard.dispose()).isFalse();
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(shard.dispose()).isTrue();
        assertThat(table.owners).isEmpty();
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_FREE)).isEqualTo(1);
    }
}
