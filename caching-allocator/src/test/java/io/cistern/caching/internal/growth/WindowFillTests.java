package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doNothing;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.order.CrossStreamOrder;
import io.cistern.caching.internal.page.AliasMappings;
import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.shard.PagesFixture;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Where the pages of a request come from, in which order streams wait, and what a failure leaves.
final class WindowFillTests extends PagesFixture {
    private final Shard third = newShard(0x3000, false);
    private final PageGrowth adaptive = growth(
            table,
            new PagePolicy(PAGE, PageFit.USUAL, PageReuse.ADAPTIVE, false, 0),
            new CrossStreamOrder(fences, clock, PageReuse.ADAPTIVE, counters));

    @AfterEach
    void theSourceKnowsAllMappings() {
        assertThat(source.known).isEqualTo(mappedAddresses());
        third.checkInvariants();
    }

    private void assertUsable(long block, int pages) {
        for (long at = block; at < block + pages * PAGE; at += PAGE) {
            assertThat(gpu.virtualMemory().access(0, at, MemoryLocation.device(0)))
                    .isEqualTo(AccessRights.READ_WRITE);
            assertThat(mapping(at).isHome()).isTrue();
        }
    }

    private long counted(CacheEvent event) {
        return counters.counted(event);
    }

    // Which pages.

    @Test
    void idlePagesOfOthersComeFirstAndTheRestIsCreated() {
        free(grow(other, 2));
        long block = move(shard, 5);
        assertUsable(block, 5);
        assertThat(counters.reservedBytes()).isEqualTo(5 * PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(5 * PAGE);
        assertThat(other.reservedBytes()).isZero();
        assertThat(counted(CacheEvent.PAGE_TAKEN)).isEqualTo(2);
        assertThat(counted(CacheEvent.STEAL)).isEqualTo(2);
        assertThat(counted(CacheEvent.PAGE_ALIASED)).isEqualTo(2);
        assertThat(counted(CacheEvent.DEVICE_ALLOC)).isEqualTo(2);
        assertThat(order.waits).containsExactly("8192→4096");
    }

    @Test
    void thePeakOfLiveBytesIsCreatedAlthoughPagesAreIdle() {
        free(grow(other, 2));
        long live = grow(third, 3);
        assertThat(counters.reservedBytes()).as("the peak is three pages").isEqualTo(3 * PAGE);
        long more = grow(shard, 3);
        assertThat(counters.reservedBytes()).isEqualTo(6 * PAGE);
        free(live);
        grow(shard, 3);
        assertThat(counters.reservedBytes()).isEqualTo(6 * PAGE);
        free(more);
    }

    @Test
    void pagesOfTheOwnStreamNeedNoOrder() {
        long[] blocks = fill(shard, 4);
        free(blocks[0], blocks[2]);
        long joined = move(shard, 2);
        assertUsable(joined, 2);
        assertThat(counters.reservedBytes()).isEqualTo(4 * PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(4 * PAGE);
        assertThat(counted(CacheEvent.STEAL)).isZero();
        assertThat(order.recordedOn).isEmpty();
        free(joined);
        assertThat(grow(shard, 1)).as("comes home without a driver call").isEqualTo(blocks[0]);
        assertThat(counted(CacheEvent.PAGES_HIT)).isEqualTo(1);
    }

    @Test
    void aPageThatComesBackIsAliasedWhereItWas() {
        long[] blocks = fill(shard, 3);
        long taken = lend(blocks[1], other);
        free(taken);
        long calls = gpu.calls().of(DriverCall.MEM_MAP);
        assertThat(grow(shard, 1)).isEqualTo(blocks[1]);
        assertThat(gpu.calls().of(DriverCall.MEM_MAP)).isEqualTo(calls);
        assertThat(counted(CacheEvent.PAGE_ALIASED)).isEqualTo(1);
        assertThat(counted(CacheEvent.PAGE_TAKEN)).isEqualTo(2);
        assertThat(mapping(taken).isHome()).isFalse();
        assertThat(order.waits).containsExactly("4096→8192", "8192→4096");
    }

    @Test
    void ofIdlePagesThoseThatAreIdleForLongestMove() {
        long[] blocks = fill(other, 8);
        for (int i : new int[] {6, 2, 0, 4}) {
            free(blocks[i]);
            clock.getAndIncrement();
        }
        long block = move(shard, 2);
        assertThat(mapping(blocks[6]).isHome()).isFalse();
        assertThat(mapping(blocks[2]).isHome()).isFalse();
        assertThat(mapping(blocks[0]).isHome()).isTrue();
        assertThat(mapping(blocks[4]).isHome()).isTrue();
        assertUsable(block, 2);
    }

    /// Although the smaller page has been idle for longer.
    @Test
    void ofIdlePagesTheLargestThatFitMoves() {
        long small = grow(other, 1);
        long tall = growth(table, 3 * PAGE, streams).grow(third, 3 * PAGE, false);
        free(small);
        clock.getAndIncrement();
        free(tall);
        long block = move(shard, 3);
        assertThat(mapping(tall).page.home).isSameAs(mapping(block));
        assertThat(mapping(small).isHome()).isTrue();
        assertThat(counters.reservedBytes()).isEqualTo(4 * PAGE);
    }

    @Test
    void aPageThatIsTooLargeStays() {
        long tall = growth(table, 3 * PAGE, streams).grow(third, 3 * PAGE, false);
        free(tall);
        long block = move(shard, 2);
        assertUsable(block, 2);
        assertThat(mapping(tall).isHome()).isTrue();
        assertThat(counters.reservedBytes()).isEqualTo(5 * PAGE);
    }

    @Test
    void whereAddressesAreShortAnArenaIsSmaller() {
        long before = range(grow(other, 1)).byteSize;
        gpu.faults().failOn(DriverCall.MEM_ADDRESS_RESERVE, 0, 1, CudaResult.OUT_OF_MEMORY);
        long small = range(grow(shard, 1)).byteSize;
        long after = range(grow(third, 1)).byteSize; // less than before if other tests hold many arenas
        assertThat(small).isBetween(after / 10, before / 7);
    }

    @Test
    void aPageIsNoLargerThanItsHole() {
        long[] blocks = fill(shard, 3);
        free(blocks[1]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        long block = growth(table, 3 * PAGE, streams).grow(shard, PAGE, false);
        assertThat(block).isEqualTo(blocks[1]);
        assertThat(mapping(block).page.byteSize).isEqualTo(PAGE);
    }

    @Test
    void aWindowMayHaveSeveralHoles() {
        long[] blocks = fill(shard, 4);
        free(blocks[0], blocks[2]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(2 * PAGE);
        free(blocks[1]);
        long before = gpu.calls().of(DriverCall.MEM_SET_ACCESS);
        assertThat(grow(shard, 3)).isEqualTo(blocks[0]);
        assertUsable(blocks[0], 3);
        assertThat(gpu.calls().of(DriverCall.MEM_SET_ACCESS)).isEqualTo(before + 2);
    }

    @Test
    void aPageFreedWhileNobodyLookedIsFound() {
        long block = grow(other, 1);
        dropMarks(other);
        free(block);
        move(shard, 1);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
    }

    /// 2 MiB for each 192 MiB, or for each 384 MiB if several streams have large blocks.
    @Test
    void theSizeOfAPageFollowsTheLiveBytesOfAllStreams() {
        PageGrowth sized = growth(table, new PagePolicy(0, PageFit.USUAL, PageReuse.WAIT, false, 0), streams);
        Shard small = newShard(0x4000, true);
        sized.grow(small, PAGE, false);
        long first = sized.grow(shard, 96 * PAGE, false);
        assertThat(mapping(first).page.byteSize).isEqualTo(PAGE);
        long second = sized.grow(other, 96 * PAGE, false);
        assertThat(mapping(second).page.byteSize).isEqualTo(2 * PAGE);
        long last = sized.grow(third, 4 * PAGE, false);
        assertThat(mapping(last).page.byteSize).isEqualTo(PAGE);
        small.checkInvariants();
    }

    /// As often as it may keep former places. From then on memory is spent, up to twice the peak.
    @Test
    void aPageThatMovedTooOftenIsNotMovedAgain() {
        Shard taker = shard;
        for (int i = 0; i <= AliasMappings.MAX_A_PAGE; i++) {
            free(adaptive.grow(taker, PAGE, false));
            taker = newShard(0x10_000 + i, false);
        }
        free(adaptive.grow(taker, PAGE, false));
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        adaptive.grow(newShard(0x20_000, false), PAGE, false);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        adaptive.grow(newShard(0x30_000, false), PAGE, false);
        assertThat(counters.reservedBytes()).as("two are live").isEqualTo(2 * PAGE);
    }

    @Test
    void aMoveThatFailedDoesNotCount() {
        free(adaptive.grow(other, PAGE, false));
        for (int i = 0; i <= AliasMappings.MAX_A_PAGE; i++) {
            gpu.faults().failOn(DriverCall.MEM_MAP, 0, 1, CudaResult.UNKNOWN);
            assertThatThrownBy(() -> adaptive.grow(shard, PAGE, false)).isInstanceOf(CudaException.class);
        }
        adaptive.grow(shard, PAGE, false);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
    }

    @Test
    void aRoomyArenaIsNineTimesASmallOne() {
        Shard small = newShard(0x4000, true);
        long ofSmall = range(grow(small, 1)).byteSize;
        long ofLarge = range(grow(shard, 1)).byteSize;
        assertThat(ofLarge).isBetween(8 * ofSmall, 10 * ofSmall);
        assertThat(ofSmall).isBetween(PAGE, (16L << 30) + PAGE);
    }

    @Test
    void freesThatPassedServeBeforeAPageIsCreated() {
        long block = grow(other, 2);
        order.busy.add(third.key);
        freeOn(third.key, block);
        other.settle(fences);
        order.busy.clear();
        move(shard, 2);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(counted(CacheEvent.DEVICE_ALLOC)).as("nothing was created").isEqualTo(1);
        assertThat(counted(CacheEvent.PAGES_MISS)).isEqualTo(2);
    }

    // Order.

    @Test
    void adaptiveGrowthCreatesRatherThanWaits() {
        free(adaptive.grow(other, PAGE, false));
        order.busy.add(other.key);
        free(adaptive.grow(shard, PAGE, false));
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(order.waits).isEmpty();
        adaptive.grow(third, PAGE, true);
        assertThat(counters.reservedBytes()).as("where idle memory comes first").isEqualTo(2 * PAGE);
        assertThat(order.waits).hasSize(1);
    }

    @Test
    void adaptiveGrowthTakesFromAStreamThatHasFinished() {
        free(adaptive.grow(other, PAGE, false));
        adaptive.grow(shard, PAGE, false);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        assertThat(order.waits).isEmpty();
    }

    /// The stream that freed last is asked first; if it is busy, the other one is not asked.
    @ParameterizedTest
    @CsvSource({"0x2000, 3", "0x3000, 4"})
    void adaptiveGrowthWaitsForNoneOfSeveralStreams(long busy, int reserved) {
        long first = adaptive.grow(other, PAGE, false);
        long second = adaptive.grow(third, PAGE, false);
        free(first);
        clock.getAndIncrement();
        free(second);
        order.busy.add(busy);
        long block = adaptive.grow(shard, 2 * PAGE, false);
        assertUsable(block, 2);
        assertThat(order.waits).isEmpty();
        assertThat(counters.reservedBytes()).isEqualTo(reserved * PAGE);
    }

    /// Its stream may have waited for the others.
    @Test
    void theStreamThatFreedLastIsAwaitedFirst() {
        long[] blocks = fill(other, 1);
        long live = grow(third, 1);
        free(blocks[0]);
        clock.getAndIncrement();
        free(live);
        move(shard, 2);
        assertThat(order.waits).containsExactly("12288→4096", "8192→4096");
    }

    @Test
    void aCaptureThatBeginsMeanwhileIsSeenByTheNextSurvey() {
        free(grow(other, 1));
        order.recording = stream -> {
            order.captured.add(stream);
            throw new CudaException(
                    DriverCall.EVENT_RECORD, CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(), "a capture began");
        };
        move(shard, 1);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(other.largestFreeBytes()).isEqualTo(PAGE);
    }

    @ParameterizedTest
    @CsvSource({"STREAM_CAPTURE_UNSUPPORTED, 17", "UNKNOWN, 1"})
    void aRefusedFenceIsTriedAgainOnlyForCaptures(CudaResult result, int times) {
        free(grow(other, 1));
        AtomicInteger records = new AtomicInteger();
        order.recording = _ -> {
            records.incrementAndGet();
            throw new CudaException(DriverCall.EVENT_RECORD, result.code(), "");
        };
        assertThatThrownBy(() -> move(shard, 1)).isInstanceOf(CudaException.class);
        assertThat(records).hasValue(times);
        assertThat(other.largestFreeBytes()).isEqualTo(PAGE);
        assertThat(other.reservedBytes()).isEqualTo(PAGE);
        assertThat(shard.reservedBytes()).isZero();
    }

    // Races.

    @Test
    void aPageThatAnotherThreadTakesEachTimeIsReplacedByANewOne() {
        long[] blocks = fill(shard, 3);
        free(lend(blocks[1], other));
        order.asking = _ -> dropMarks(other);
        long block = move(shard, 1);
        order.asking = _ -> {};
        assertUsable(block, 1);
        assertThat(block).isNotEqualTo(blocks[1]);
        assertThat(counters.reservedBytes()).isEqualTo(4 * PAGE);
        assertThat(other.reservedBytes()).isEqualTo(PAGE);
    }

    @Test
    void aPageThatIsGoneWhenItIsTakenIsCreated() {
        free(grow(other, 2));
        order.asking = _ -> dropMarks(other);
        long block = move(shard, 2);
        order.asking = _ -> {};
        assertUsable(block, 2);
        assertThat(counters.reservedBytes()).isEqualTo(4 * PAGE);
        assertThat(other.largestFreeBytes()).isEqualTo(2 * PAGE);
    }

    // Failures.

    /// Two pages come from the other shard, one from this one, and two are new.
    @ParameterizedTest
    @CsvSource({
        "MEM_CREATE, 0",
        "MEM_CREATE, 1",
        "MEM_MAP, 0",
        "MEM_MAP, 1",
        "MEM_MAP, 2",
        "MEM_MAP, 3",
        "MEM_MAP, 4",
        "MEM_SET_ACCESS, 0"
    })
    void aRefusalLeavesAllPagesWhereTheyWere(DriverCall call, int after) {
        long[] own = fill(shard, 3);
        long[] others = fill(other, 3);
        free(own[0], others[0], others[1]);
        long free = gpu.memory().freeBytes(0);
        gpu.faults().failOn(call, after, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> move(shard, 5)).isInstanceOf(CudaException.class);
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
        assertThat(other.reservedBytes()).isEqualTo(3 * PAGE);
        assertThat(counters.reservedBytes()).isEqualTo(6 * PAGE);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
        assertThat(growth.refusedBytes()).isZero();
        assertThat(table.mappings()).hasSize(6);
        assertThat(grow(shard, 1)).isEqualTo(own[0]);
        assertThat(grow(other, 2)).isEqualTo(others[0]);
    }

    @Test
    void whatTheSourceKnowsAlreadyIsToldThatItGoes() {
        free(grow(other, 1));
        long[] last = {0};
        source.mapping = address -> {
            if (address > last[0] && last[0] != 0) {
                throw new IllegalStateException("the second page");
            }
            last[0] = address;
        };
        assertThatThrownBy(() -> move(shard, 3)).isInstanceOf(IllegalStateException.class);
        source.mapping = _ -> {};
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        assertThat(table.mappings()).hasSize(1);
    }

    /// One page is known to the source by then, which needs it.
    @Test
    void aPageThatTheSourceNeedsStaysReservedUntilItGoes() {
        int[] mapped = {0};
        source.mapping = _ -> {
            if (++mapped[0] == 2) {
                throw new IllegalStateException("the second page");
            }
        };
        source.needed = _ -> true;
        assertThatThrownBy(() -> move(shard, 3)).isInstanceOf(IllegalStateException.class);
        source.mapping = _ -> {};
        assertThat(growth.refusedBytes()).isEqualTo(PAGE);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        growth.releaseRefused();
        assertThat(counters.reservedBytes()).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
        source.known.clear();
    }

    @Test
    void handlesThatTheDriverKeepsAreReleasedLater() {
        gpu.faults().failOn(DriverCall.MEM_MAP, 1, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 2, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> grow(shard, 2)).isInstanceOf(CudaException.class);
        assertThat(growth.refusedBytes()).isEqualTo(2 * PAGE);
        growth.releaseRefused();
        assertThat(growth.refusedBytes()).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
    }

    /// The page comes home to its aliased block, and another one is created after it.
    @Test
    void aPageThatWasToComeHomeStaysWhereItIs() {
        long first = grow(shard, 1);
        long taken = lend(first, other);
        free(taken);
        gpu.faults().failOn(DriverCall.MEM_CREATE, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> grow(shard, 2)).isInstanceOf(CudaException.class);
        assertThat(other.reservedBytes()).isEqualTo(PAGE);
        assertThat(other.largestFreeBytes()).isEqualTo(PAGE);
        assertThat(shard.reservedBytes()).isZero();
        assertThat(grow(shard, 2)).isEqualTo(first);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
    }

    /// All three pages are mapped by then; the driver keeps the middle one, which is new.
    @Test
    void aPageThatCannotBeUnmappedStaysReservedUntilItCan() {
        free(grow(other, 1));
        gpu.faults().failOn(DriverCall.MEM_SET_ACCESS, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 1, 1, CudaResult.UNKNOWN);
        Throwable failure = catchThrowable(() -> move(shard, 3));
        assertThat(failure).isInstanceOf(CudaException.class);
        assertThat(failure.getSuppressed()).hasSize(1);
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(shard.reservedBytes()).isZero();
        assertThat(other.largestFreeBytes()).isEqualTo(PAGE);
        assertThat(growth.refusedBytes()).isEqualTo(PAGE);
        table.checkInvariants();
        Mapping stuck = table.mappings().stream()
                .filter(each -> Shard.of(each.arena) == shard)
                .findFirst()
                .orElseThrow();
        long block = move(shard, 2);
        assertThat(block).as("after the addresses that are stuck").isGreaterThan(stuck.address);
        growth.releaseRefused();
        assertThat(growth.refusedBytes()).isZero();
        assertThat(counters.reservedBytes()).isEqualTo(2 * PAGE);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - 2 * PAGE);
        source.known.addAll(mappedAddresses());
    }

    /// It keeps its home with the other shard, and the addresses here are not used.
    @Test
    void aMovedPageThatCannotBeUnmappedServesWhereItWas() {
        long[] others = fill(other, 1);
        free(others[0]);
        gpu.faults().failOn(DriverCall.MEM_SET_ACCESS, 0, 1, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.MEM_UNMAP, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> move(shard, 1)).isInstanceOf(CudaException.class);
        assertThat(growth.refusedBytes()).isZero();
        assertThat(table.mappings()).hasSize(2);
        table.checkInvariants();
        assertThat(grow(other, 1)).isEqualTo(others[0]);
        free(others[0]);
        source.known.addAll(mappedAddresses());
        assertThat(other.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertThat(table.mappings()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY);
    }

    /// Its listeners hear of pages before the block is handed out.
    @Test
    void aBlockThatNobodyReceivedIsFree() {
        IllegalStateException failure = new IllegalStateException("a listener");
        doThrow(failure).when(sink).segmentAcquired(anyInt(), anyLong(), anyLong());
        assertThatThrownBy(() -> grow(shard, 1)).isSameAs(failure);
        doNothing().when(sink).segmentAcquired(anyInt(), anyLong(), anyLong());
        assertThat(shard.liveBytes()).isZero();
        assertThat(shard.largestFreeBytes()).isEqualTo(PAGE);
        grow(shard, 1);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
    }

    // Little memory.

    @Test
    void moreThanSeemsLeftIsAskedForInOnePiece() {
        gpu.memory().allocate(0, CAPACITY - 10 * PAGE);
        assertThatThrownBy(() -> grow(shard, 11)).isInstanceOf(CudaException.class);
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).isEqualTo(1);
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isZero();
        grow(shard, 10);
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).as("it fits exactly").isEqualTo(11);
    }

    @Test
    void ifMoreIsLeftThanSeemedThePagesAreCreated() {
        long rest = gpu.memory().allocate(0, CAPACITY - 16 * PAGE);
        grow(shard, 1);
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE))
                .as("one page is one piece")
                .isEqualTo(1);
        gpu.memory().free(0, rest);
        grow(other, 20);
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).isEqualTo(1 + 21);
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isEqualTo(1);
        assertThat(counters.reservedBytes()).isEqualTo(21 * PAGE);
    }

    @Test
    void aRequestLargerThanTheDeviceIsRefusedAtOnce() {
        assertThatThrownBy(() -> growth.grow(shard, CAPACITY + PAGE, false))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("the device has " + CAPACITY + " bytes");
        assertThat(gpu.calls().of(DriverCall.MEM_ADDRESS_RESERVE)).isZero();
        grow(shard, (int) (CAPACITY / PAGE));
    }

    @Test
    void movedPagesAreAnnounced() {
        long from = grow(other, 1);
        free(from);
        long to = move(shard, 1);
        verify(sink).pageMoved(0, from, to, PAGE);
    }
}
