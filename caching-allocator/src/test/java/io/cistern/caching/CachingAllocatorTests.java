package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.shard.AddressBatch;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.SegmentMemory.Block;
import io.cistern.diagnostics.SegmentMemory.State;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CachingAllocatorTests {
    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    /// Farther than blocks of one arena that hardly holds any.
    private static final long FAR_BYTES = 64 * MIB;

    private static final long A = 0x1000;
    private static final long B = 0x2000;

    private final TestPages pages = new TestPages(64 * MIB);
    private final TestContext context = new TestContext(pages);
    private final CachingAllocator caching = context.open();

    @AfterEach
    void invariantsHold() {
        caching.checkInvariants();
        assertThat(caching.reservedBytes(0)).hasValue(pages.liveBytes());
        assertThat(context.announcedBytes()).isEqualTo(pages.liveBytes());
    }

    @Test
    void aFreedBlockIsTheNextOneOfItsSizeOnItsStream() {
        long block = allocate(3 * KIB, A);
        free(block, A);
        assertThat(allocate(3 * KIB, A)).isEqualTo(block);
        assertThat(pages.creates).isEqualTo(1);
    }

    @Test
    void smallBlocksShareAPage() {
        for (int i = 0; i < 4096; i++) {
            assertThat(allocate(1, A) % 512).isZero();
        }
        assertThat(caching.reservedBytes(0)).hasValue(2 * MIB);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSmallBlockHasTheSizeOfAClassIfThreadsKeepBlocks(boolean threadCaches) {
        CachingAllocator other = new TestContext(new TestPages(2 * MIB)).open(threadCaches);
        long block = other.allocate(8 * KIB + 1, 0, A);
        assertThat(other.statistics(0))
                .containsEntry("allocated_bytes.all.current", 8 * KIB + (threadCaches ? KIB : 512));
        other.free(block, 0, 0, A);
        other.close();
    }

    @Test
    void freedNeighboursBecomeOneBlock() {
        long first = allocate(MIB / 2, A);
        long second = allocate(MIB / 2, A);
        long third = allocate(MIB / 2, A);
        allocate(MIB / 2, A);
        free(first, A);
        free(third, A);
        free(second, A);
        assertThat(allocate(MIB, A)).isEqualTo(first);
        assertThat(pages.creates).isEqualTo(1);
    }

    @Test
    void theSmallestFreeBlockThatFitsIsTaken() {
        long wide = allocate(64 * KIB, A);
        allocate(KIB, A);
        long narrow = allocate(32 * KIB, A);
        allocate(KIB, A);
        free(wide, A);
        free(narrow, A);
        assertThat(allocate(31 * KIB, A)).isEqualTo(narrow);
    }

    @Test
    void smallAndLargeBlocksLieInArenasOfTheirOwn() {
        long small = allocate(64 * KIB, A);
        long large = allocate(64 * KIB + 1, A);
        assertThat(Math.abs(large - small)).isGreaterThan(FAR_BYTES);
    }

    @Test
    void largeBlocksOfAllSizesShareAnArena() {
        long large = allocate(16 * MIB, A);
        free(large, A);
        assertThat(allocate(4 * MIB, A)).isEqualTo(large);
    }

    @Test
    void theyDoSoWherePagesStayToo() {
        TestPages own = new TestPages(64 * MIB);
        CachingAllocator stable = new TestContext(own).open(TestContext.options(PagePolicy.USUAL.stable(), false));
        stable.allocate(KIB, 0, A);
        long large = stable.allocate(16 * MIB, 0, B);
        stable.free(large, 0, 0, B);
        assertThat(stable.allocate(4 * MIB, 0, B)).isEqualTo(large);
    }

    @Test
    void aBlockFreedOnItsOwnStreamDoesNotGoToAnotherStream() {
        long block = allocate(4 * MIB, A);
        free(block, A);
        assertThat(allocate(4 * MIB, B)).isNotEqualTo(block);
    }

    @Test
    void growthTakesTheFreeEndOfTheArenaInsteadOfLeavingItBehind() {
        long block = allocate(4 * MIB, A);
        free(block, A);
        assertThat(allocate(8 * MIB, A)).isEqualTo(block);
        assertThat(caching.reservedBytes(0)).hasValue(8 * MIB);
    }

    @Test
    void bothNamesOfTheLegacyDefaultStreamAreOneStream() {
        long block = allocate(KIB, 0);
        free(block, 1);
        assertThat(allocate(KIB, 0)).isEqualTo(block);
    }

    @Test
    void aBlockLastUsedOnAnotherStreamWaitsForIt() {
        context.order.busy.add(B);
        long block = allocate(KIB, A);
        free(block, B);
        long other = allocate(KIB, A);
        assertThat(other).isNotEqualTo(block);
        context.order.busy.clear();
        assertThat(allocateUntil(block, 200))
                .as("it comes back once B has got past the free")
                .isTrue();
        assertThat(context.order.openFences()).isZero();
    }

    @Test
    void manyFreesOnAnotherStreamCostOneFence() {
        long[] blocks = new long[100];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(KIB, A);
        }
        for (long block : blocks) {
            free(block, B);
        }
        assertThat(context.order.recordedOn).as("nothing is recorded by a free").isEmpty();
        allocate(2 * KIB, A);
        assertThat(context.order.recordedOn).containsExactly(B);
    }

    @Test
    void trimGivesWholeIdlePagesBackAndKeepsLiveBlocks() {
        long kept = allocate(3 * MIB, A);
        free(allocate(20 * MIB, A), A);
        long before = caching.reservedBytes(0).orElseThrow();
        long returned = caching.trim(0, 0);
        assertThat(returned).isEqualTo(before - 4 * MIB);
        free(kept, A);
    }

    @Test
    void trimStopsAtWhatIsToBeKept() {
        free(allocate(40 * MIB, A), A);
        caching.trim(0, 30 * MIB);
        assertThat(caching.reservedBytes(0).orElseThrow()).isBetween(28 * MIB, 30 * MIB);
    }

    @Test
    void trimLeavesPagesThatWorkMayStillUse() {
        free(allocate(8 * MIB, A), A);
        context.order.busy.add(A);
        assertThat(caching.trim(0, 0)).isZero();
        context.order.busy.clear();
        assertThat(caching.trim(0, 0)).isEqualTo(8 * MIB);
    }

    @Test
    void holesLeftByATrimAreFilledBeforeTheArenaGrows() {
        long low = allocate(8 * MIB, A);
        long high = allocate(4 * MIB, A);
        free(low, A);
        caching.trim(0, 0);
        assertThat(allocate(8 * MIB, A)).isEqualTo(low);
        free(high, A);
    }

    @Test
    void idleMemoryOfAnotherStreamServesBeforeAnAllocationFails() {
        free(allocate(60 * MIB, A), A);
        context.order.busy.add(A);
        assertThat(allocate(50 * MIB, B)).isNotZero();
        assertThat(context.order.waits).containsExactly(A + "→" + B);
    }

    @Test
    void ownMemoryInPiecesIsPutTogetherBeforeAnAllocationFails() {
        long[] blocks = new long[16];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(4 * MIB, A);
        }
        for (int i = 0; i < blocks.length; i += 2) {
            free(blocks[i], A);
        }
        assertThat(allocate(32 * MIB, A)).isNotZero();
        assertThat(caching.reservedBytes(0)).hasValue(64 * MIB);
    }

    @Test
    void outOfMemorySaysWhatIsHeldAndWhatHelped() {
        long live = allocate(40 * MIB, A);
        free(allocate(12 * MIB, B), B);
        assertThatThrownBy(() -> allocate(30 * MIB, A))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining(30 * MIB + " bytes (30.0 MiB) requested")
                .hasMessageContaining(40 * MIB + " bytes (40.0 MiB) reserved")
                .hasMessageContaining(40 * MIB + " are allocated")
                .hasMessageContaining("; trim gave " + 12 * MIB + " bytes")
                .hasMessageContaining("largest free block");
        free(live, A);
    }

    @Test
    void aRequestLargerThanTheDeviceAsksForNothing() {
        assertThatThrownBy(() -> allocate(TestContext.TOTAL_BYTES + 1, A))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        assertThatThrownBy(() -> allocate(Long.MAX_VALUE, A)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(pages.creates).isZero();
    }

    @Test
    void anEndedStreamLeavesIdleMemoryAndNoFence() {
        free(allocate(8 * MIB, A), A);
        free(allocate(KIB, A), A);
        caching.streamClosing(0, A);
        assertThat(caching.trim(0, 0)).isEqualTo(10 * MIB);
        assertThat(caching.reservedBytes(0)).hasValue(0);
        assertThat(context.order.openFences()).isZero();
    }

    @Test
    void blocksThatOutliveTheirStreamAreFreedWithoutAskingIt() {
        long block = allocate(8 * MIB, A);
        caching.streamClosing(0, A);
        context.order.recordedOn.clear();
        free(block, A);
        assertThat(caching.trim(0, 0)).isEqualTo(8 * MIB);
        assertThat(context.order.recordedOn).containsOnly(TestOrder.ALL);
    }

    @Test
    void memoryOfAnEndedStreamServesOthersAndGoesOnceItsWorkIsDone() {
        free(allocate(48 * MIB, A), A);
        context.order.busy.add(A);
        caching.streamClosing(0, A);
        allocate(24 * MIB, B);
        assertThat(caching.reservedBytes(0)).hasValue(48 * MIB);
        assertThat(context.order.waits).containsExactly(A + "→" + B);
        context.order.busy.clear();
        caching.trim(0, 0);
        assertThat(caching.reservedBytes(0)).hasValue(24 * MIB);
    }

    @Test
    void aStreamOfTheSameHandleComesAfterItsPredecessor() {
        context.order.busy.add(A);
        long block = allocate(4 * MIB, A);
        free(block, A);
        caching.streamClosing(0, A);
        assertThat(allocate(4 * MIB, A)).isEqualTo(block);
        assertThat(context.order.waits).containsExactly(A + "→" + A);
    }

    @Test
    void freesWaitingForAStreamGetTheirFenceBeforeItEnds() {
        long block = allocate(KIB, A);
        free(block, B);
        caching.streamClosing(0, B);
        assertThat(context.order.recordedOn).contains(B);
        assertThat(allocate(KIB, A)).isEqualTo(block);
        verify(context.devices, never()).synchronize(0);
    }

    @Test
    void anAddressThatIsNotTheStartOfALiveBlockIsRefused() {
        long block = allocate(2 * KIB, A);
        assertThatThrownBy(() -> free(block + 512, A)).isInstanceOf(UnknownAddressException.class);
        assertThatThrownBy(() -> free(0x7000, A)).isInstanceOf(UnknownAddressException.class);
        free(block, A);
        assertThatThrownBy(() -> free(block, A)).isInstanceOf(UnknownAddressException.class);
    }

    @Test
    void closeReturnsEverything() {
        free(allocate(8 * MIB, A), A);
        free(allocate(KIB, B), A);
        caching.close();
        assertThat(pages.live).isEmpty();
        verify(context.devices).synchronize(0);
    }

    @Test
    void thePeakIsTheMostThatWasEverReserved() {
        free(allocate(20 * MIB, A), A);
        caching.trim(0, 0);
        assertThat(caching.reservedPeakBytes(0)).hasValue(20 * MIB);
        caching.resetPeaks(0);
        assertThat(caching.reservedPeakBytes(0)).hasValue(0);
    }

    @Test
    void blocksThatAThreadKeptAreFreeAfterATrim() {
        long[] blocks = new long[200];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = allocate(KIB, A);
        }
        for (long block : blocks) {
            caching.free(block, KIB, 0, A);
        }
        assertThat(caching.trim(0, 0)).isEqualTo(2 * MIB);
    }

    @Test
    void aRefillTakesAsManyBlocksAsAreWantedOrFree() {
        long first = allocate(64 * KIB, A);
        Shard shard = caching.cache(0).shards.shard(A, KIB);
        AddressBatch batch = new AddressBatch();
        shard.allocateMany(64 * KIB, 64 * KIB, 3, batch);
        assertThat(batch.count).isEqualTo(3);
        assertThat(batch.addresses[2]).as("the lowest comes last").isEqualTo(first + 64 * KIB);
        shard.allocateMany(64 * KIB, 64 * KIB, 100, batch);
        assertThat(batch.count).as("all that the page has").isEqualTo(31);
        shard.allocateMany(64 * KIB, 64 * KIB, 100, batch);
        assertThat(batch.count).isEqualTo(31);
        batch.freeAll(caching.cache(0).shards.ranges);
    }

    /// The heir would get a block that another stream still uses.
    @Test
    void aStreamThatEndedIsNotTakenOverWhileABlockWaits() {
        long block = allocate(4 * MIB, A);
        context.order.busy.add(B);
        free(block, B);
        caching.streamClosing(0, A);
        assertThat(allocate(4 * MIB, B + A)).isNotEqualTo(block);
        context.order.busy.clear();
        caching.trim(0, 0);
        assertThat(caching.reservedBytes(0)).hasValue(4 * MIB);
    }

    /// So long that the marks of idle pages are given up.
    @Test
    void idlePagesAreFoundAfterManyHitsToo() {
        CachingAllocator hitting = new TestContext(pages).open(TestContext.options(PagePolicy.USUAL, false));
        hitting.free(hitting.allocate(60 * MIB, 0, A), 0, 0, A);
        for (int i = 0; i < 3000; i++) {
            hitting.free(hitting.allocate(2 * MIB, 0, A), 0, 0, A);
        }
        long creates = pages.creates;
        hitting.free(hitting.allocate(40 * MIB, 0, B), 0, 0, B);
        assertThat(pages.creates - creates).isLessThanOrEqualTo(2);
        hitting.checkInvariants();
        hitting.close();
    }

    @Test
    void pagesForSmallBlocksStaySmallAndOthersGrow() {
        pages.capacity = 64L << 30;
        allocate(20L << 30, A);
        assertThat(pages.creates).isLessThan(200);
        allocate(KIB, A);
        assertThat(caching.reservedBytes(0).orElseThrow() % (4 * MIB)).isEqualTo(2 * MIB);
    }

    /// A hole is no memory, so a segment ends there.
    @Test
    void segmentsAreTheStretchesOfMemoryBetweenHoles() {
        long taken = allocate(4 * MIB, A);
        long waiting = allocate(4 * MIB, A);
        long idle = allocate(2 * MIB, A);
        long beside = allocate(2 * MIB, A);
        long gone = allocate(4 * MIB, A);
        long last = allocate(4 * MIB, A);
        context.order.busy.add(B);
        free(waiting, B);
        free(gone, A);
        caching.trim(0, 0);
        free(idle, A);
        assertThat(caching.segments(0))
                .containsExactly(
                        new SegmentMemory(
                                taken,
                                12 * MIB,
                                OptionalLong.of(A),
                                true,
                                List.of(
                                        new Block(taken, 4 * MIB, State.TAKEN),
                                        new Block(waiting, 4 * MIB, State.WAITING),
                                        new Block(idle, 2 * MIB, State.IDLE),
                                        new Block(beside, 2 * MIB, State.TAKEN))),
                        new SegmentMemory(
                                last,
                                4 * MIB,
                                OptionalLong.of(A),
                                true,
                                List.of(new Block(last, 4 * MIB, State.TAKEN))));
        caching.streamClosing(0, A);
        assertThat(caching.segments(0)).extracting(SegmentMemory::stream).containsOnly(OptionalLong.empty());
    }

    @Test
    void segmentsAreCountedUntilTheyGoBack() {
        TestRanges ranges = new TestRanges(64 * MIB);
        CachingAllocator segments = new TestContext(ranges).open(false);
        segments.free(segments.allocate(20 * MIB, 0, A), 0, 0, A);
        assertThat(segments.statistics(0)).containsEntry("segment.all.current", 1L);
        segments.trim(0, 0);
        assertThat(segments.statistics(0))
                .containsEntry("segment.all.current", 0L)
                .containsEntry("segment.all.freed", 1L)
                .containsEntry("reserved_bytes.all.current", 0L);
    }

    private boolean allocateUntil(long wanted, int attempts) {
        for (int i = 0; i < attempts; i++) {
            if (allocate(KIB, A) == wanted) {
                return true;
            }
        }
        return false;
    }

    private long allocate(long byteSize, long stream) {
        return caching.allocate(byteSize, 0, stream);
    }

    private void free(long address, long stream) {
        caching.free(address, 0, 0, stream);
    }
}
