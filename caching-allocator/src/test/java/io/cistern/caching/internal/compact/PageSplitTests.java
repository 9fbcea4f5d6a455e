package io.cistern.caching.internal.compact;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.page.Mapping;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.shard.PagesFixture;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// One page of six slots, of which the first, the fourth and the last have live blocks, is replaced by three pages.
final class PageSplitTests extends PagesFixture {
    private static final int SLOTS = 6;
    private static final int[] KEPT = {0, 3, 5};

    private final long[] blocks = new long[SLOTS];
    private final CopySpace space = new CopySpace(gpu, 0, PAGE);
    private Mapping home;

    @BeforeEach
    void fragment() {
        var large = growth(table, SLOTS * PAGE, streams);
        for (int i = 0; i < SLOTS; i++) {
            blocks[i] = large.grow(shard, PAGE, false);
            gpu.copies().fillBytes(0, blocks[i], (byte) (i + 1), PAGE, 0);
        }
        gpu.devices().synchronize(0);
        home = mapping(blocks[0]);
        free(blocks[1], blocks[2], blocks[4]);
    }

    @AfterEach
    void allThatIsKnownIsMapped() {
        assertThat(source.known).isEqualTo(mappedAddresses());
        space.close();
    }

    private SparsePage sparse() {
        SparsePage sparse = new SparsePage(home.page);
        sparse.addFree(blocks[4], blocks[5]);
        sparse.addFree(blocks[1], blocks[3]);
        return sparse;
    }

    private boolean split(boolean mayUseHost) {
        return new PageSplit(table, space, sparse(), mayUseHost).run();
    }

    private byte at(long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(1);
            gpu.copies().toHost(0, host, address, 1, 0);
            gpu.devices().synchronize(0);
            return host.get(ValueLayout.JAVA_BYTE, 0);
        }
    }

    private void assertContents() {
        for (int i : KEPT) {
            assertThat(at(blocks[i])).isEqualTo((byte) (i + 1));
            assertThat(at(blocks[i] + PAGE - 1)).isEqualTo((byte) (i + 1));
        }
    }

    private void assertReplaced() {
        assertContents();
        assertThat(counters.reservedBytes() - growth.refusedBytes()).isEqualTo(3 * PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(3 * PAGE);
        assertThat(shard.largestFreeBytes()).isZero();
        for (int i : KEPT) {
            assertThat(mapping(blocks[i]).page.byteSize).isEqualTo(PAGE);
            assertThat(mapping(blocks[i]).page.isPinned()).isFalse();
        }
        assertThat(table.has(home)).isFalse();
    }

    private void assertUnchanged() {
        assertContents();
        assertThat(counters.reservedBytes() - growth.refusedBytes()).isEqualTo(SLOTS * PAGE);
        assertThat(shard.reservedBytes()).isEqualTo(SLOTS * PAGE);
        assertThat(shard.largestFreeBytes()).isEqualTo(2 * PAGE);
        assertThat(table.mappings()).containsExactly(home);
        assertThat(home.page.isPinned()).isFalse();
        assertThat(source.known).isEqualTo(mappedAddresses());
        shard.checkInvariants();
    }

    @Test
    void aPageIsReplacedWhereItsBytesAre() {
        assertThat(split(false)).isTrue();
        assertReplaced();
        verify(sink).segmentReleased(0, blocks[0], SLOTS * PAGE);
        for (int i : KEPT) {
            verify(sink).segmentAcquired(0, blocks[i], PAGE);
        }
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - 3 * PAGE);
        free(blocks[3]);
        assertThat(shard.giveBack(Long.MAX_VALUE, fences)).isEqualTo(PAGE);
        assertContentsOf(0);
        assertContentsOf(5);
        assertThat(move(shard, 1)).as("a hole is used again").isBetween(blocks[1], blocks[4]);
    }

    @Test
    void theAddressesForTheCopyGoBack() {
        try (CopySpace own = new CopySpace(gpu, 0, PAGE)) {
            assertThat(new PageSplit(table, own, sparse(), false).run()).isTrue();
        }
        assertThat(gpu.heldObjects()).as("the arena alone").containsEntry("reservations", 1L);
        assertThat(gpu.calls().of(DriverCall.STREAM_DESTROY)).isEqualTo(1);
    }

    private void assertContentsOf(int block) {
        assertThat(at(blocks[block])).isEqualTo((byte) (block + 1));
    }

    @Test
    void aPageWhoseFreePartIsInUseStays() {
        SparsePage planned = sparse();
        long taken = shard.allocateAfterMiss(PAGE);
        assertThat(taken).isEqualTo(blocks[4]);
        assertThat(new PageSplit(table, space, planned, false).run()).isFalse();
        free(taken);
        assertUnchanged();
    }

    @Test
    void aPageThatIsPinnedStays() {
        table.pin(blocks[0], PAGE, Page.Pin.CAPTURED);
        assertThat(split(false)).isFalse();
        table.unpinAll(Page.Pin.CAPTURED);
        assertUnchanged();
        assertThat(gpu.calls().of(DriverCall.MEM_CREATE)).isEqualTo(1);
    }

    @Test
    void aPageThatItsSourceNeedsStays() {
        source.needed = address -> address == blocks[0];
        assertThat(split(false)).isFalse();
        source.needed = _ -> false;
        assertUnchanged();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - SLOTS * PAGE);
        assertThat(split(false)).isTrue();
    }

    @Test
    void theOtherPlacesOfAPageGoFirst() {
        free(blocks[0], blocks[3], blocks[5]);
        var large = growth(table, SLOTS * PAGE, streams);
        long moved = large.grow(other, SLOTS * PAGE, true);
        Mapping left = home;
        assertThat(left.isHome()).isFalse();
        home = mapping(moved);
        SparsePage whole = new SparsePage(home.page);
        source.needed = address -> address == left.address;
        assertThat(new PageSplit(table, space, whole, false).run()).isFalse();
        assertThat(home.page.isPinned()).isFalse();
        source.needed = _ -> false;
        assertThat(new PageSplit(table, space, whole, false).run()).isTrue();
        assertThat(table.has(left)).isFalse();
        assertThat(other.reservedBytes()).isEqualTo(SLOTS * PAGE);
        assertThat(table.mappings()).hasSize(1);
    }

    /// Each call of a kind fails in turn, once or so often that the steps which undo the others fail too.
    @ParameterizedTest
    @CsvSource({
        "MEM_CREATE, 3, 1",
        "MEM_CREATE, 1, 3",
        "MEM_MAP, 6, 1",
        "MEM_MAP, 6, 3",
        "MEM_SET_ACCESS, 4, 1",
        "MEM_SET_ACCESS, 4, 3",
        "MEM_UNMAP, 4, 1",
        "MEM_UNMAP, 4, 3",
        "MEM_ADDRESS_RESERVE, 1, 1",
        "MEMCPY_DTOD_ASYNC, 3, 1",
        "STREAM_CREATE, 1, 1",
        "STREAM_SYNCHRONIZE, 1, 1",
        "STREAM_SYNCHRONIZE, 1, 2"
    })
    void aRefusalLeavesThePageAsItWas(DriverCall call, int calls, int times) {
        for (int after = 0; after < calls; after++) {
            gpu.faults().failOn(call, after, times, CudaResult.UNKNOWN);
            assertThatThrownBy(() -> split(false))
                    .as("%s after %d", call, after)
                    .isInstanceOf(CudaException.class);
            gpu.faults().clear();
            assertUnchanged();
            table.physical.idle();
            growth.releaseRefused();
            assertThat(growth.refusedBytes()).isZero();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - SLOTS * PAGE);
        }
        assertThat(split(false)).isTrue();
        assertReplaced();
    }

    /// A copy may still write to them.
    @Test
    void pagesThatACopyMayUseStayUntilTheDeviceIsIdle() {
        gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 9, CudaResult.UNKNOWN);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 9, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> split(false)).isInstanceOf(CudaException.class);
        gpu.faults().clear();
        assertUnchanged();
        assertThat(growth.refusedBytes()).isEqualTo(3 * PAGE);
        growth.releaseRefused();
        assertThat(growth.refusedBytes()).isEqualTo(3 * PAGE);
        table.physical.idle();
        growth.releaseRefused();
        assertThat(growth.refusedBytes()).isZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(CAPACITY - SLOTS * PAGE);
    }

    // Without room.

    private void leave(int pages) {
        gpu.memory().allocate(0, CAPACITY - (SLOTS + pages) * PAGE);
    }

    @Test
    void withoutRoomNothingIsReplaced() {
        leave(2);
        assertThatThrownBy(() -> split(false))
                .isInstanceOf(CudaException.class)
                .satisfies(refusal ->
                        assertThat(((CudaException) refusal).result()).isEqualTo(CudaResult.OUT_OF_MEMORY));
        assertUnchanged();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(2 * PAGE);
    }

    @Test
    void bytesWithoutRoomWaitOnTheHost() {
        leave(1);
        assertThat(split(true)).isTrue();
        assertContents();
        assertThat(table.onHost()).hasSize(2);
        assertThat(shard.reservedBytes()).isEqualTo(PAGE);
        assertThat(counters.reservedBytes()).isEqualTo(PAGE);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(6 * PAGE);
        assertThat(source.known).as("it knows no memory of the host").hasSize(1);
        for (Page each : List.copyOf(table.onHost())) {
            assertThat(new PageSplit(table, space, new SparsePage(each), false).run())
                    .isTrue();
        }
        assertThat(table.onHost()).isEmpty();
        assertReplaced();
    }

    @Test
    void aHostWithoutRoomIsToldBesideTheRefusal() {
        leave(0);
        gpu.faults().failOn(DriverCall.MEM_CREATE, 1, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> split(true)).isInstanceOf(CudaException.class).satisfies(refusal -> {
            assertThat(((CudaException) refusal).result()).isEqualTo(CudaResult.OUT_OF_MEMORY);
            assertThat(refusal.getSuppressed()).hasSize(1);
        });
        assertUnchanged();
    }

    @Test
    void theWholeOfAPlanIsCarriedOut() {
        try (Compaction compaction = new Compaction(gpu, table)) {
            CompactionPlan plan = CompactionPlan.of(table, Long.MAX_VALUE, Long.MAX_VALUE, CAPACITY, false);
            assertThat(plan.pageCount()).isEqualTo(1);
            assertThat(plan.freeBytes()).isEqualTo(3 * PAGE);
            assertThat(plan.keptBytes()).isEqualTo(3 * PAGE);
            var result = compaction.run(plan, gpu.nanoTime());
            assertThat(result.freedBytes()).isEqualTo(3 * PAGE);
            assertThat(result.movedBytes()).isEqualTo(3 * PAGE);
            assertThat(result.pages()).isEqualTo(1);
        }
        assertReplaced();
        assertThat(CompactionPlan.of(table, Long.MAX_VALUE, Long.MAX_VALUE, CAPACITY, false)
                        .pageCount())
                .isZero();
    }

    @Test
    void aPlanWithoutRoomSaysWhy() {
        leave(2);
        try (Compaction compaction = new Compaction(gpu, table)) {
            CompactionPlan plan = CompactionPlan.of(table, Long.MAX_VALUE, Long.MAX_VALUE, CAPACITY, false);
            gpu.faults().failOn(DriverCall.DEVICE_GET_ATTRIBUTE, 0, 9, CudaResult.INVALID_VALUE);
            var result = compaction.run(plan, gpu.nanoTime());
            gpu.faults().clear();
            assertThat(result.freedBytes()).isZero();
            assertThat(result.obstacle()).isEqualTo("the device has no room for a copy of " + 3 * PAGE + " bytes");
        }
        assertUnchanged();
    }
}
