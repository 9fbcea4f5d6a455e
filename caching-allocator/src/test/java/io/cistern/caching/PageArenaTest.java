package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.when;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.EventSink;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.mockito.InOrder;

class PageArenaTest {
    private static final long PAGE = 2 << 20;
    private static final long BASE = 1L << 40;
    private static final MemoryLocation DEVICE = MemoryLocation.device(0);

    private final VirtualMemory driver = mock(VirtualMemory.class);
    private final PageSource source = mock(PageSource.class);
    private final EventSink events = mock(EventSink.class);
    private final Reserved reserved = new Reserved(0, events);
    private PageArena arena;

    @BeforeEach
    void reserve() {
        when(source.traits(0)).thenReturn(new PageTraits(PAGE, "device", "none", false));
        when(source.create(anyLong(), anyInt())).thenReturn(71L, 72L, 73L);
        when(driver.reserve(anyInt(), anyLong(), anyLong(), anyLong())).thenReturn(BASE);
        PhysicalPages pages = new PhysicalPages(0, driver, source, reserved, PAGE, PAGE);
        arena = PageArena.reserve(new StreamShard(0, true, Cutting.ANY), 100 * PAGE, pages, new RegionMap());
    }

    @Test
    void pagesAreCreatedThenMappedThenOpenedInOneCall() {
        arena.map(BASE, 2 * PAGE);
        InOrder order = inOrder(source, driver, events);
        order.verify(source).create(PAGE, 0);
        order.verify(driver).map(0, BASE, PAGE, 71);
        order.verify(source).create(PAGE, 0);
        order.verify(driver).map(0, BASE + PAGE, PAGE, 72);
        order.verify(driver).setAccess(0, BASE, 2 * PAGE, DEVICE, AccessRights.READ_WRITE);
        order.verify(events).segmentAcquired(0, BASE, 2 * PAGE);
        assertThat(reserved.bytes()).isEqualTo(2 * PAGE);
    }

    @Test
    void aPageThatCannotBeCreatedTakesTheEarlierOnesBack() {
        when(source.create(anyLong(), anyInt())).thenReturn(71L).thenThrow(outOfMemory(DriverCall.MEM_CREATE));
        assertThatThrownBy(() -> arena.map(BASE, 3 * PAGE)).isInstanceOf(CudaException.class);
        InOrder order = inOrder(source, driver);
        order.verify(driver).unmap(0, BASE, PAGE);
        order.verify(source).release(71, PAGE, 0);
        verify(driver, never()).setAccess(anyInt(), anyLong(), anyLong(), any(), any());
        nothingIsLeft();
    }

    @Test
    void aPageThatCannotBeMappedIsReleasedAndNeverUnmapped() {
        doThrow(outOfMemory(DriverCall.MEM_MAP)).when(driver).map(anyInt(), anyLong(), anyLong(), anyLong());
        assertThatThrownBy(() -> arena.map(BASE, PAGE)).isInstanceOf(CudaException.class);
        verify(source).release(71, PAGE, 0);
        verify(driver, never()).unmap(anyInt(), anyLong(), anyLong());
        nothingIsLeft();
    }

    @Test
    void pagesThatCannotBeOpenedAreUnmappedAndReleased() {
        doThrow(outOfMemory(DriverCall.MEM_SET_ACCESS))
                .when(driver)
                .setAccess(anyInt(), anyLong(), anyLong(), any(), any());
        assertThatThrownBy(() -> arena.map(BASE, 2 * PAGE)).isInstanceOf(CudaException.class);
        InOrder order = inOrder(source, driver);
        order.verify(driver).unmap(0, BASE, 2 * PAGE);
        order.verify(source).release(71, PAGE, 0);
        order.verify(source).release(72, PAGE, 0);
        nothingIsLeft();
    }

    @Test
    void aRollBackThatFailsTooKeepsTheFirstError() {
        CudaException first = outOfMemory(DriverCall.MEM_SET_ACCESS);
        CudaException second = outOfMemory(DriverCall.MEM_UNMAP);
        doThrow(first).when(driver).setAccess(anyInt(), anyLong(), anyLong(), any(), any());
        doThrow(second).when(driver).unmap(anyInt(), anyLong(), anyLong());
        assertThatThrownBy(() -> arena.map(BASE, PAGE)).isSameAs(first).hasSuppressedException(second);
    }

    @Test
    void whatARollBackLeftIsTakenAwayBeforeTheAddressesAreMappedAgain() {
        CudaException failure = outOfMemory(DriverCall.MEM_SET_ACCESS);
        doThrow(failure).doNothing().when(driver).setAccess(anyInt(), anyLong(), anyLong(), any(), any());
        doThrow(outOfMemory(DriverCall.MEM_UNMAP)).doNothing().when(driver).unmap(anyInt(), anyLong(), anyLong());
        assertThatThrownBy(() -> arena.map(BASE, PAGE)).isSameAs(failure);
        arena.map(BASE, PAGE);
        verify(source).release(71, PAGE, 0);
        assertThat(reserved.bytes()).isEqualTo(PAGE);
    }

    @Test
    void aHandleThatTheDriverWouldNotTakeBackIsReservedUntilItDoes() {
        doThrow(outOfMemory(DriverCall.MEM_RELEASE)).doNothing().when(source).release(71, PAGE, 0);
        arena.map(BASE, 2 * PAGE);
        arena.giveBack(BASE, BASE + PAGE);
        assertThat(reserved.bytes()).isEqualTo(2 * PAGE);
        arena.giveBack(BASE + PAGE, BASE + 2 * PAGE);
        assertThat(reserved.bytes()).isZero();
    }

    @Test
    void pagesGoBackByUnmapThenRelease() {
        arena.map(BASE, 2 * PAGE);
        arena.giveBack(BASE + PAGE, BASE + 2 * PAGE);
        InOrder order = inOrder(source, driver, events);
        order.verify(driver).unmap(0, BASE + PAGE, PAGE);
        order.verify(source).release(72, PAGE, 0);
        order.verify(events).segmentReleased(0, BASE + PAGE, PAGE);
        assertThat(arena.checkInvariants()).isEqualTo(PAGE);
    }

    @Test
    void onlyPagesThatLieWhollyInARangeCanGoBack() {
        arena.map(BASE, 3 * PAGE);
        long from = BASE + 512;
        long to = BASE + 3 * PAGE - 512;
        assertThat(arena.returnableStart(from, to, Long.MAX_VALUE)).isEqualTo(BASE + PAGE);
        assertThat(arena.returnableEnd(from, to)).isEqualTo(BASE + 2 * PAGE);
    }

    private void nothingIsLeft() {
        assertThat(reserved.bytes()).isZero();
        assertThat(arena.checkInvariants()).isZero();
        verifyNoMoreInteractions(events);
    }

    private static CudaException outOfMemory(DriverCall call) {
        return new CudaException(call, CudaResult.OUT_OF_MEMORY.code(), "in a test");
    }
}
