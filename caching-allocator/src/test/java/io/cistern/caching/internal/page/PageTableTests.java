package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.shard.PagesFixture;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// What a device's table knows about its pages, and how pages leave it.
final class PageTableTests extends PagesFixture {
    private Page page(long address) {
        return mapping(address).page;
    }

    private List<@Nullable Page> change(Predicate<Page> which) {
        List<@Nullable Page> claimed = new ArrayList<>();
        table.beginChange(shard, which, claimed);
        return claimed;
    }

    // Owners.

    @Test
    void anOwnerComesWithItsFirstArenaAndGoesWithItsLast() {
        PageArena first = PageArena.open(shard, 64 * PAGE, table);
        PageArena second = PageArena.open(shard, 64 * PAGE, table);
        PageArena others = PageArena.open(other, 64 * PAGE, table);
        List.of(first, others, second).forEach(table::enter);
        assertThat(table.owners).containsExactly(shard, other);
        first.close();
        assertThat(table.owners).containsExactly(shard, other);
        second.close();
        assertThat(table.owners).containsExactly(other);
        others.close();
        assertThat(table.owners).isEmpty();
    }

    // Pins.

    @Test
    void pinsReachThePagesUnderARangeAndNoOther() {
        long block = grow(shard, 4);
        table.pin(block + PAGE - 1, PAGE + 1, Page.Pin.CAPTURED);
        assertThat(page(block).isPinned()).isTrue();
        assertThat(page(block + PAGE).isPinned()).isTrue();
        assertThat(page(block + 2 * PAGE).isPinned()).isFalse();
        table.unpinAll(Page.Pin.CHANGING);
        assertThat(page(block).isPinned(Page.Pin.CAPTURED)).isTrue();
        table.unpinAll(Page.Pin.CAPTURED);
        assertThat(page(block).isPinned()).isFalse();
        table.pin(block, PAGE, Page.Pin.CAPTURED);
        assertThat(page(block + PAGE).isPinned()).isFalse();
        table.pin(1, PAGE, Page.Pin.CAPTURED);
    }

    @Test
    void pinsSkipAddressesWithoutMemory() {
        long[] blocks = fill(shard, 3);
        free(blocks[1]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        table.pin(blocks[0] + 1, 3 * PAGE - 1, Page.Pin.CAPTURED);
        assertThat(page(blocks[0]).isPinned()).isTrue();
        assertThat(page(blocks[2]).isPinned()).isTrue();
    }

    /// A thread that gives pages back looks at the pins without the table's lock.
    @Test
    void aPageThatFallsAsleepIsPinnedAtEachMoment() throws Exception {
        Page page = page(grow(shard, 1));
        AtomicInteger moment = new AtomicInteger(); // odd from its claim until it sleeps
        try (ExecutorService watching = Executors.newSingleThreadExecutor()) {
            Future<Boolean> seenLoose = watching.submit(() -> {
                boolean loose = false;
                for (int now = 0; now >= 0 && !loose; now = moment.get()) {
                    loose = now % 2 == 1 && !page.isPinned() && moment.get() == now;
                }
                return loose;
            });
            for (int round = 0; round < 200_000 && !seenLoose.isDone(); round++) {
                change(_ -> true);
                moment.incrementAndGet();
                table.endChange(page, true);
                moment.incrementAndGet();
                table.endChange(page, false);
            }
            moment.set(-1);
            assertThat(seenLoose.get()).isFalse();
        }
    }

    // Pages that go.

    @Test
    void aPageThatGoesLeavesTheTable() {
        long[] blocks = fill(shard, 3);
        Page last = page(blocks[2]);
        Mapping gone = mapping(blocks[0]);
        free(blocks[0]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(ranges.find(blocks[0])).isNull();
        assertThat(gone.page.number).isNegative();
        assertThat(table.has(gone)).isFalse();
        assertThat(last.number).isZero();
        assertThat(table.has(mapping(blocks[2]))).isTrue();
        verify(sink).segmentReleased(0, blocks[0], PAGE);
        assertThat(counters.counted(CacheEvent.PAGES_UNMAPPED)).isEqualTo(1);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        free(blocks[1], blocks[2]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        assertThat(table.mappings()).isEmpty();
    }

    private long giveBack(long address) {
        return table.giveBack((PageArena) range(address), address, address + PAGE);
    }

    @Test
    void aPageStaysWhileItIsPinnedOrNeeded() {
        long block = grow(shard, 1);
        table.pin(block, PAGE, Page.Pin.CAPTURED);
        assertThat(giveBack(block)).isEqualTo(AddressRange.STAYS);
        table.unpinAll(Page.Pin.CAPTURED);
        source.needed = _ -> true;
        assertThat(giveBack(block)).isEqualTo(AddressRange.STAYS);
        assertThat(table.has(mapping(block))).isTrue();
        assertThat(gpu.calls().of(DriverCall.MEM_UNMAP)).isZero();
    }

    @Test
    void aPageStaysWhileOneOfItsOtherPlacesIsNeeded() {
        long block = grow(shard, 1);
        long taken = lend(block, other);
        free(taken);
        source.needed = address -> address == block;
        assertThat(other.giveBack(Long.MAX_VALUE, fences)).isZero();
        assertThat(mapping(taken).isHome()).isTrue();
        source.needed = _ -> false;
        assertThat(other.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(counters.counted(CacheEvent.PAGE_UNALIASED)).isEqualTo(1);
        assertThat(ranges.find(block)).isNull();
        assertThat(grow(shard, 1)).as("the place can be used again").isEqualTo(block);
    }

    // Sleep.

    private void sleep(long address, boolean unmapped) {
        Page page = page(address);
        assertThat(change(each -> each == page)).containsExactly(page);
        assertThat(page.isPinned(Page.Pin.CHANGING)).isTrue();
        if (unmapped) {
            source.unmapping(0, address, PAGE);
            table.physical.unmap(address, PAGE);
            page.isMapped = false;
            table.physical.release(page);
            page.hasMemory = false;
        }
        table.endChange(page, true);
        assertThat(page.isAsleep()).isTrue();
        assertThat(page.isPinned(Page.Pin.CHANGING)).isFalse();
    }

    @Test
    void sleepingPagesAreCountedAndNotListedAsMapped() {
        long[] blocks = fill(shard, 2);
        sleep(blocks[0], true);
        assertThat(table.asleepBytes()).isEqualTo(PAGE);
        assertThat(table.mappings()).containsExactly(mapping(blocks[1]));
        table.endChange(page(blocks[0]), false);
        assertThat(page(blocks[0]).isAsleep()).isFalse();
        sleep(blocks[0], false);
    }

    @Test
    void aPageThatFailedToWakeGoesWithItsMapping() {
        long block = grow(shard, 1);
        free(block);
        sleep(block, false);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
        assertThat(gpu.calls().of(DriverCall.MEM_UNMAP)).isEqualTo(1);
        assertThat(ranges.find(block)).isNull();
    }

    @Test
    void onlyPagesOfTheOwnerAreClaimedAndOnlyThoseWanted() {
        long[] blocks = fill(shard, 3);
        grow(other, 1);
        Page second = page(blocks[1]);
        assertThat(change(each -> each != second)).containsExactly(page(blocks[0]), page(blocks[2]));
        assertThat(second.isPinned()).isFalse();
        table.endChange(page(blocks[0]), false);
        assertThat(page(blocks[0]).isPinned()).isFalse();
        table.endChange(page(blocks[2]), false);
    }

    // Pages on the host.

    @Test
    void aPageOnTheHostGoesWithoutBytesOfTheDevice() {
        long block = grow(shard, 1);
        Page page = page(block);
        assertThat(table.onHost()).isEmpty();
        table.physical.unmap(block, PAGE);
        source.unmapping(0, block, PAGE);
        table.physical.release(page);
        table.physical.createOnHost(page);
        table.physical.map(block, page);
        shard.sleeps(PAGE, true);
        assertThat(table.onHost()).containsExactly(page);
        assertThat(growth.hostBytes()).isEqualTo(PAGE);
        free(block);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isZero();
        assertThat(table.onHost()).isEmpty();
        assertThat(gpu.heldObjects().getOrDefault("physical memory", 0L)).isZero();
    }

    // Pages that are stuck.

    /// A new page that a rollback could not unmap.
    private Mapping stuck() {
        gpu.faults().failOn(DriverCall.MEM_SET_ACCESS, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> grow(shard, 1)).isInstanceOf(CudaException.class);
        return table.mappings().getFirst();
    }

    @Test
    void stuckPagesAreTriedAgain() {
        Mapping stuck = stuck();
        assertThat(table.stuckBytes()).isEqualTo(PAGE);
        assertThat(change(_ -> true)).as("nobody's").isEmpty();
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        table.releaseStuck();
        assertThat(table.stuckBytes()).isEqualTo(PAGE);
        long block = grow(shard, 1);
        assertThat(block).isNotEqualTo(stuck.address);
        table.releaseStuck();
        assertThat(table.stuckBytes()).isZero();
        assertThat(table.has(stuck)).isFalse();
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - PAGE);
        assertThat(grow(shard, 1)).as("its addresses are used again").isEqualTo(stuck.address);
    }

    // Smaller pages.

    /// The second and the last quarter stay.
    @Test
    void aPageIsReplacedBySmallerOnes() {
        var large = growth(table, 4 * PAGE, streams);
        long block = large.grow(shard, PAGE, false);
        long[] rest = new long[3];
        for (int i = 0; i < 3; i++) {
            rest[i] = large.grow(shard, PAGE, false);
        }
        assertThat(counters.reservedBytes()).isEqualTo(4 * PAGE);
        Mapping home = mapping(block);
        Page page = home.page;
        free(block, rest[1]);
        long[] froms = {block, rest[1]};
        long[] tos = {rest[0], rest[2]};
        int[] parts = new int[2];
        assertThat(shard.claimFree(home.arena, froms, tos, parts)).isTrue();
        List<Mapping> homes = new ArrayList<>();
        for (long at : new long[] {rest[0], rest[2]}) {
            homes.add(new Page(table.physical.create(PAGE), PAGE, home.arena, at).home);
        }
        table.reserve(2);
        assertThat(table.physical.tryUnmap(home)).isTrue();
        homes.forEach(each -> table.physical.map(each.address, each.page));
        table.exchange(page, homes, parts);
        table.physical.release(page);
        assertThat(ranges.find(block)).isNull();
        assertThat(ranges.find(rest[0])).isSameAs(home.arena);
        assertThat(ranges.find(rest[1])).isNull();
        assertThat(ranges.find(rest[2])).isSameAs(home.arena);
        assertThat(table.mappings()).containsExactlyElementsOf(homes);
        assertThat(page.number).isNegative();
        assertThat(shard.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(shard.liveBytes()).isEqualTo(2 * PAGE);
        free(rest[0]);
        shard.lookedAt();
        assertThat(shard.mayBeIdle(homes.get(0))).isTrue();
        assertThat(shard.mayBeIdle(homes.get(1))).isFalse();
        source.known.addAll(mappedAddresses());
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(move(shard, 1)).isEqualTo(block);
    }

    @Test
    void theEndOfAReplacedPageIsForgottenToo() {
        long block = growth(table, 2 * PAGE, streams).grow(shard, PAGE, false);
        Mapping home = mapping(block);
        int[] parts = new int[1];
        assertThat(shard.claimFree(home.arena, new long[] {block + PAGE}, new long[] {block + 2 * PAGE}, parts))
                .isTrue();
        Mapping next = new Page(table.physical.create(PAGE), PAGE, home.arena, block).home;
        table.reserve(1);
        table.physical.unmap(block, 2 * PAGE);
        table.physical.map(block, next.page);
        table.exchange(home.page, List.of(next), parts);
        table.physical.release(home.page);
        assertThat(ranges.find(block)).isSameAs(home.arena);
        assertThat(ranges.find(block + PAGE)).isNull();
    }

    /// As when a page comes back from the host: nothing lies in it, and all of it stays.
    @Test
    void aFreePageIsReplacedByAFreePage() {
        long block = grow(shard, 1);
        free(block);
        Mapping home = mapping(block);
        Mapping next = new Page(table.physical.create(PAGE), PAGE, home.arena, block).home;
        table.reserve(1);
        table.physical.unmap(block, PAGE);
        table.physical.map(block, next.page);
        table.exchange(home.page, List.of(next), new int[0]);
        table.physical.release(home.page);
        shard.checkInvariants();
        assertThat(shard.reservedBytes()).isEqualTo(PAGE);
        shard.lookedAt();
        assertThat(next.idle).isTrue();
        assertThat(move(other, 1)).isNotZero();
        assertThat(counters.counted(CacheEvent.PAGE_TAKEN)).isEqualTo(1);
    }

    // Aliased mappings.

    @Test
    void thePlacesOfAPageAreUnmappedOrNone() {
        Shard third = newShard(0x3000, false);
        long first = grow(shard, 1);
        long second = lend(first, other);
        long block = lend(second, third);
        Page page = page(block);
        List<Mapping> places = List.of(mapping(first), mapping(second));
        assertThat(other.tryClaim(places.get(1))).isTrue();
        assertThat(table.aliases.unmap(page))
                .as("another thread unmaps the second")
                .isFalse();
        assertThat(table.has(places.get(0))).isTrue();
        other.unclaim(places.get(1), false);
        source.needed = address -> address == second;
        assertThat(table.aliases.unmap(page)).isFalse();
        assertThat(table.has(places.get(0))).isFalse();
        assertThat(table.has(places.get(1))).isTrue();
        source.needed = _ -> false;
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> table.aliases.unmap(page)).isInstanceOf(CudaException.class);
        assertThat(source.known).contains(second);
        table.checkInvariants();
        assertThat(table.aliases.unmap(page)).isTrue();
        assertThat(table.aliases.unmap(page)).as("none left").isTrue();
        assertThat(counters.counted(CacheEvent.PAGE_UNALIASED)).isEqualTo(2);
        assertThat(ranges.find(first)).isNull();
        assertThat(ranges.find(second)).isNull();
        assertThat(table.mappings()).containsExactly(page.home);
        assertThat(grow(shard, 1)).isEqualTo(first);
        third.checkInvariants();
    }

    @Test
    void aShardsPlacesAreUnmappedAndNoOther() {
        long[] own = fill(shard, 3);
        long[] others = fill(other, 1);
        long[] taken = {lend(own[0], other), lend(own[1], other)};
        lend(others[0], shard);
        Mapping left = mapping(others[0]);
        source.needed = address -> address == own[1];
        assertThat(table.aliases.unmap(shard)).isFalse();
        source.needed = _ -> false;
        assertThat(table.aliases.unmap(shard)).isTrue();
        assertThat(table.has(left)).isTrue();
        assertThat(ranges.find(own[0])).isNull();
        assertThat(ranges.find(own[1])).isNull();
        assertThat(page(taken[0]).mappings).hasSize(1);
        assertThat(mapping(own[2]).isHome()).isTrue();
    }

    // Too many places.

    private static final int MOST = AliasMappings.MAX_A_PAGE;

    /// One page, at more and more places.
    private List<Mapping> places(int count) {
        List<Mapping> places = new ArrayList<>();
        long block = grow(shard, 1);
        for (int i = 0; i < count; i++) {
            places.add(mapping(block));
            block = lend(block, newShard(0x10_000 + i, false));
        }
        return places;
    }

    private long aliased() {
        return counters.counted(CacheEvent.PAGE_ALIASED) - counters.counted(CacheEvent.PAGE_UNALIASED);
    }

    @Test
    void thePlacesThatWereLeftFirstAreUnmapped() {
        List<Mapping> places = places(MOST + 3);
        assertThat(aliased()).isEqualTo(MOST);
        assertThat(places.stream().filter(table::has)).containsExactlyElementsOf(places.subList(3, MOST + 3));
    }

    @Test
    void eachPageAllowsSoManyPlaces() {
        grow(shard, 1);
        List<Mapping> places = places(2 * MOST + 1);
        assertThat(aliased()).isEqualTo(2 * MOST);
        assertThat(places.stream().filter(table::has)).containsExactlyElementsOf(places.subList(1, 2 * MOST + 1));
    }

    @Test
    void asManyPlacesAsAPageMayHaveStay() {
        List<Mapping> places = places(MOST);
        assertThat(aliased()).isEqualTo(MOST);
        assertThat(places).allMatch(table::has);
    }

    @Test
    void placesThatWorkMayStillUseStay() {
        order.busy.add(shard.key);
        for (long i = 0; i < MOST + 4; i++) {
            order.busy.add(0x10_000 + i);
        }
        List<Mapping> places = places(MOST + 4);
        assertThat(aliased()).isEqualTo(MOST + 4);
        assertThat(places).allMatch(table::has);
        order.busy.clear();
        table.aliases.unmapOld(streams);
        assertThat(aliased()).isEqualTo(MOST);
    }

    @Test
    void aDriverThatKeepsOldPlacesFailsNoRequest() {
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        List<Mapping> places = places(MOST + 2);
        assertThat(aliased()).isEqualTo(MOST + 2);
        assertThat(source.known).isEqualTo(mappedAddresses());
        gpu.faults().clear();
        table.aliases.unmapOld(streams);
        assertThat(places.stream().filter(table::has)).containsExactlyElementsOf(places.subList(2, MOST + 2));
        assertThat(Objects.requireNonNull(places.getLast()).isHome()).isFalse();
    }
}
