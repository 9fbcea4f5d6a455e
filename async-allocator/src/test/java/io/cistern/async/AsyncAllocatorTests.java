package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.verifyNoMoreInteractions;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.StreamOrder;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.InOrder;

class AsyncAllocatorTests {
    private static final long POOL = 0xB00;
    private static final long STREAM = 0x51;
    private static final long ADDRESS = 0x10000;
    private static final long DEVICE_BYTES = 1L << 30;

    private final CudaDriver driver = mock(CudaDriver.class);
    private final MemoryPools pools = mock(MemoryPools.class);
    private final Devices devices = mock(Devices.class);
    private final Graphs graphs = mock(Graphs.class);
    private final StreamOrder order = mock(StreamOrder.class);
    private AsyncAllocator async;

    @BeforeEach
    void open() {
        when(driver.graphs()).thenReturn(graphs);
        when(graphs.captureStatus(anyInt(), anyLong())).thenReturn(CaptureStatus.NONE);
        when(driver.pools()).thenReturn(pools);
        when(driver.devices()).thenReturn(devices);
        when(devices.totalBytes(anyInt())).thenReturn(DEVICE_BYTES);
        when(pools.create(any())).thenReturn(POOL);
        when(pools.allocateFrom(anyInt(), anyLong(), anyLong(), anyLong())).thenReturn(ADDRESS);
        async = open(AsyncOptions.USUAL);
    }

    private AsyncAllocator open(AsyncOptions options) {
        return AsyncFixture.async(driver, 2, options, order);
    }

    @Test
    void memoryComesFromAPoolOfItsOwnThatKeepsIt() {
        assertThat(async.allocate(100, 1, STREAM)).isEqualTo(ADDRESS);
        InOrder order = inOrder(pools);
        order.verify(pools).create(MemoryPoolProperties.onDevice(1));
        order.verify(pools).setAttribute(1, POOL, PoolAttribute.RELEASE_THRESHOLD, Long.MAX_VALUE);
        order.verify(pools).allocateFrom(1, POOL, 100, STREAM);
    }

    @Test
    void theDevicesOwnPoolIsLeftAlone() {
        async.allocate(100, 0, STREAM);
        async.free(ADDRESS, 100, 0, STREAM);
        async.close();
        verify(pools, never()).defaultPool(anyInt());
        verify(pools, never()).setCurrentPool(anyInt(), anyLong());
    }

    @Test
    void aDeviceGetsOnePool() {
        async.allocate(100, 0, STREAM);
        async.allocate(200, 0, STREAM);
        verify(pools, times(1)).create(any());
    }

    @Test
    void aDeviceThatIsNotUsedGetsNoneAndHasNothingReserved() {
        assertThat(async.reservedBytes(1)).hasValue(0);
        assertThat(async.reservedPeakBytes(1)).hasValue(0);
        assertThat(async.trim(1, 0)).isZero();
        async.close();
        verify(devices).isUsed(1); // which asks nothing of it
        verifyNoMoreInteractions(pools, devices);
    }

    @Test
    void aPoolThatCannotBeSetUpIsDestroyed() {
        CudaException failure = new CudaException(DriverCall.MEM_POOL_SET_ATTRIBUTE, 1, "in a test");
        doThrow(failure).when(pools).setAttribute(anyInt(), anyLong(), any(), anyLong());
        assertThatThrownBy(() -> async.allocate(100, 0, STREAM)).isSameAs(failure);
        verify(pools).destroy(0, POOL);
    }

    @Test
    void outOfMemorySynchronisesTrimsAndTriesOnceMore() {
        when(pools.allocateFrom(0, POOL, 100, STREAM)).thenThrow(outOfMemory()).thenReturn(ADDRESS);
        when(pools.attribute(0, POOL, PoolAttribute.RESERVED_CURRENT)).thenReturn(64L << 20);
        assertThat(async.allocate(100, 0, STREAM)).isEqualTo(ADDRESS);
        InOrder order = inOrder(pools, devices);
        order.verify(pools).allocateFrom(0, POOL, 100, STREAM);
        order.verify(devices).synchronize(0);
        order.verify(pools).trimTo(0, POOL, 0);
        order.verify(pools).allocateFrom(0, POOL, 100, STREAM);
    }

    @Test
    void outOfMemoryTwiceSaysWhatThePoolHolds() {
        when(pools.allocateFrom(0, POOL, 100, STREAM)).thenThrow(outOfMemory());
        when(pools.attribute(0, POOL, PoolAttribute.RESERVED_CURRENT)).thenReturn(4096L);
        when(pools.attribute(0, POOL, PoolAttribute.USED_CURRENT)).thenReturn(1024L);
        assertThatThrownBy(() -> async.allocate(100, 0, STREAM))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("4096 bytes reserved")
                .hasMessageContaining("1024 are allocated and 3072 are idle between them")
                .hasRootCauseInstanceOf(CudaException.class);
        verify(pools, times(2)).allocateFrom(0, POOL, 100, STREAM);
        assertThat(async.statistics(0)).containsEntry("num_alloc_retries", 1L).containsEntry("num_ooms", 1L);
    }

    @Test
    void aRequestForMoreThanTheDeviceHasKeepsIdleMemory() {
        when(pools.allocateFrom(0, POOL, DEVICE_BYTES + 1, STREAM)).thenThrow(outOfMemory());
        assertThatThrownBy(() -> async.allocate(DEVICE_BYTES + 1, 0, STREAM))
                .hasMessageContaining("the device has 1073741824 bytes (1.00 GiB) in all")
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        refused -> assertThat(refused.canNeverFit()).isTrue());
        verify(pools, never()).trimTo(anyInt(), anyLong(), anyLong());
        assertThat(async.statistics(0)).containsEntry("num_ooms", 1L);
    }

    @Test
    void anotherErrorIsNotTriedAgain() {
        CudaException failure =
                new CudaException(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, CudaResult.INVALID_HANDLE.code(), "in a test");
        when(pools.allocateFrom(0, POOL, 100, STREAM)).thenThrow(failure);
        assertThatThrownBy(() -> async.allocate(100, 0, STREAM)).isSameAs(failure);
        verify(devices, never()).synchronize(0);
    }

    @Test
    void aFreeInADeadContextIsBookKeeping() {
        doThrow(new CudaException(DriverCall.MEM_FREE_ASYNC, CudaResult.ILLEGAL_ADDRESS.code(), "in a test"))
                .when(pools)
                .free(0, ADDRESS, STREAM);
        assertThatCode(() -> async.free(ADDRESS, 100, 0, STREAM)).doesNotThrowAnyException();
    }

    @Test
    void aFreeThatTheDriverRefusesIsTriedAgainOnceAllWorkIsDone() {
        async.allocate(100, 0, STREAM);
        doThrow(new CudaException(DriverCall.MEM_FREE_ASYNC, CudaResult.UNKNOWN.code(), "in a test"))
                .when(pools)
                .free(0, ADDRESS, STREAM);
        async.free(ADDRESS, 100, 0, STREAM);
        async.close();
        InOrder order = inOrder(pools, devices);
        order.verify(devices).synchronize(0);
        order.verify(pools).free(0, ADDRESS, Streams.LEGACY_DEFAULT);
        order.verify(devices).synchronize(0);
        order.verify(pools).destroy(0, POOL);
    }

    @Test
    void aRefusedFreeIsTriedAgainWithItsStreamsNextCall() {
        async.allocate(100, 0, STREAM);
        refuseFree(CudaResult.UNKNOWN);
        async.free(ADDRESS, 100, 0, STREAM);
        async.allocate(100, 0, STREAM + 8);
        verify(pools, times(1)).free(0, ADDRESS, STREAM);
        async.allocate(100, 0, STREAM);
        async.allocate(100, 0, STREAM);
        verify(pools, times(2)).free(0, ADDRESS, STREAM);
    }

    @Test
    void aRefusedFreeIsNotTriedOnALaterStreamOfTheSameHandle() {
        async.allocate(100, 0, STREAM);
        CudaException failure = refusal(CudaResult.UNKNOWN);
        doThrow(failure, failure).doNothing().when(pools).free(0, ADDRESS, STREAM);
        async.free(ADDRESS, 100, 0, STREAM);
        async.streamClosing(0, STREAM);
        verify(pools, times(2)).free(0, ADDRESS, STREAM);
        async.allocate(100, 0, STREAM);
        verify(pools, times(2)).free(0, ADDRESS, STREAM);
        async.close();
        verify(pools).free(0, ADDRESS, Streams.LEGACY_DEFAULT);
    }

    @Test
    void anAddressThatTheDriverDoesNotKnowIsNotTriedAgain() {
        async.allocate(100, 0, STREAM);
        refuseFree(CudaResult.INVALID_VALUE);
        async.free(ADDRESS, 100, 0, STREAM);
        async.allocate(100, 0, STREAM);
        async.close();
        verify(pools, times(1)).free(anyInt(), anyLong(), anyLong());
    }

    private void refuseFree(CudaResult result) {
        doThrow(refusal(result)).doNothing().when(pools).free(0, ADDRESS, STREAM);
    }

    private static CudaException refusal(CudaResult result) {
        return new CudaException(DriverCall.MEM_FREE_ASYNC, result.code(), "in a test");
    }

    @Test
    void trimTellsWhatWentBack() {
        async.allocate(100, 0, STREAM);
        when(pools.attribute(0, POOL, PoolAttribute.RESERVED_CURRENT)).thenReturn(64L << 20, 64L << 20, 32L << 20);
        assertThat(async.trim(0, 10)).isEqualTo(32L << 20);
        verify(pools).trimTo(0, POOL, 0);
    }

    @Test
    void closeWaitsForRunningWorkBeforeThePoolGoes() {
        async.allocate(100, 0, STREAM);
        async.close();
        InOrder order = inOrder(pools, devices);
        order.verify(devices).synchronize(0);
        order.verify(pools).destroy(0, POOL);
    }

    /// The framework closes again once no capture is under way.
    @Test
    void closeBesideACaptureLeavesThePoolOpen() {
        async.allocate(100, 0, STREAM);
        CudaException refusal = new CudaException(
                DriverCall.CONTEXT_SYNCHRONIZE, CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(), "in a test");
        doThrow(refusal).doNothing().when(devices).synchronize(0);
        assertThatThrownBy(async::close).isSameAs(refusal);
        verify(pools, never()).destroy(0, POOL);
        async.close();
        verify(pools).destroy(0, POOL);
    }

    @Test
    void aFreeOnAStreamThatHasEndedComesAfterAllWork() {
        when(order.recordAll(0)).thenReturn(5L);
        async.allocate(100, 0, STREAM);
        async.streamClosing(0, STREAM);
        async.free(ADDRESS, 100, 0, STREAM);
        verify(pools, never()).free(anyInt(), anyLong(), anyLong());
        when(order.passed(0, 5)).thenReturn(true);
        async.trim(0, Long.MAX_VALUE);
        verify(pools).free(0, ADDRESS, 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFreeOnALaterStreamByThatHandleIsOrdinary(boolean allocates) {
        async.allocate(100, 0, STREAM);
        async.streamClosing(0, STREAM);
        when(order.passed(0, 0)).thenReturn(true);
        if (allocates) {
            async.allocate(200, 0, STREAM);
        } else {
            assertThat(async.recordUse(ADDRESS + 512, 0, STREAM)).isTrue();
        }
        async.free(ADDRESS, 100, 0, STREAM);
        verify(pools).free(0, ADDRESS, STREAM);
    }

    @Test
    void closeReleasesTheFencesOfEndedStreams() {
        when(order.record(0, STREAM)).thenReturn(7L);
        async.allocate(100, 0, STREAM);
        async.streamClosing(0, STREAM);
        async.close();
        verify(order).release(0, 7);
    }

    @Test
    void onlyTheCallerCanNameItsOwnDefaultStream() {
        assertThat(async.recordUse(ADDRESS, 0, Streams.PER_THREAD_DEFAULT)).isFalse();
    }

    private static CudaException outOfMemory() {
        return new CudaException(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, CudaResult.OUT_OF_MEMORY.code(), "in a test");
    }
}
