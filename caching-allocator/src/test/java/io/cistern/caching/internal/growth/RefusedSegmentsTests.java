package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import io.cistern.caching.TestContext;
import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class RefusedSegmentsTests {
    private static final Segment SEGMENT = new Segment(1 << 20, 2 << 20, 0);

    private final RangeSource source = mock(RangeSource.class);
    private final DeviceCounters counters = mock(DeviceCounters.class);
    private final RefusedSegments refused = new RefusedSegments(counters);

    private void keep() {
        refused.begin();
        refused.keep(SEGMENT);
        refused.end();
    }

    @Test
    void aSegmentCountsAsReservedUntilItsSourceTakesIt() {
        doThrow(new CudaException(DriverCall.MEM_FREE, CudaResult.NOT_PERMITTED.code(), "in a test"))
                .doReturn(true)
                .when(source)
                .tryRelease(SEGMENT);
        keep();
        verify(counters).acquired(SEGMENT.address(), SEGMENT.byteSize());

        refused.releaseAll(source);
        assertThat(refused.byteSize()).isEqualTo(SEGMENT.byteSize());
        verify(counters, never()).released(SEGMENT.byteSize());

        refused.releaseAll(source);
        assertThat(refused.byteSize()).isZero();
        verify(counters).released(SEGMENT.byteSize());
    }

    @Test
    void othersGrowWhileTheSourceTakesOne() {
        keep();
        doAnswer(_ -> {
                    assertThat(Thread.holdsLock(refused)).isFalse();
                    return true;
                })
                .when(source)
                .tryRelease(SEGMENT);

        refused.releaseAll(source);

        assertThat(refused.byteSize()).isZero();
    }

    /// Who listens hears of it as often as it stays and goes.
    @Test
    void listenersHearOfEachAttempt() {
        doThrow(new CudaException(DriverCall.MEM_FREE, CudaResult.NOT_PERMITTED.code(), "in a test"))
                .doReturn(true)
                .when(source)
                .tryRelease(SEGMENT);
        keep();
        refused.releaseAll(source);
        refused.releaseAll(source);
        verify(counters, times(2)).releasing(SEGMENT.address(), SEGMENT.byteSize());
        verify(counters).stays(SEGMENT.address(), SEGMENT.byteSize());
    }

    @Test
    void aSegmentGoesWithADeadContext() {
        doThrow(new CudaException(DriverCall.MEM_FREE, CudaResult.LAUNCH_FAILED.code(), "in a test"))
                .when(source)
                .tryRelease(SEGMENT);
        keep();
        refused.releaseAll(source);
        assertThat(refused.byteSize()).isZero();
        verify(counters).released(SEGMENT.byteSize());
    }

    private SegmentGrowth growth(AddressRangeMap ranges) {
        when(source.acquire(anyLong(), anyLong(), anyInt())).thenReturn(SEGMENT);
        return new SegmentGrowth(
                source,
                mock(VirtualMemory.class),
                counters,
                ranges,
                new SegmentPolicy(256, 512, true),
                1L << 36,
                new Fences(0, mock(CudaDriver.class), new TestOrder(), counters));
    }

    private static Shard shard() {
        return new Shard(
                TestContext.timeline(0x1000), false, SplitPolicy.ANY, new AtomicLong(), TestContext.counters());
    }

    @Test
    void aSegmentThatAFullHeapHasNoPlaceForGoesBack() {
        when(source.tryRelease(SEGMENT)).thenReturn(true);
        AddressRangeMap full = mock(AddressRangeMap.class);
        doThrow(OutOfMemoryError.class).when(full).put(any(), anyLong(), anyLong());
        SegmentGrowth growth = growth(full);
        assertThatThrownBy(() -> growth.grow(shard(), 1 << 20, false)).isInstanceOf(OutOfMemoryError.class);
        verify(full).remove(any(), eq(SEGMENT.address()), eq(SEGMENT.byteSize()));
        verify(source).tryRelease(SEGMENT);
        assertThat(growth.refusedBytes()).isZero();
    }

    @Test
    void itIsKeptUntilItsSourceTakesIt() {
        AddressRangeMap full = mock(AddressRangeMap.class);
        doThrow(OutOfMemoryError.class).when(full).put(any(), anyLong(), anyLong());
        doThrow(new CudaException(DriverCall.MEM_FREE, CudaResult.NOT_PERMITTED.code(), "in a test"))
                .doReturn(true)
                .when(source)
                .tryRelease(SEGMENT);
        SegmentGrowth growth = growth(full);
        assertThatThrownBy(() -> growth.grow(shard(), 1 << 20, false)).isInstanceOf(OutOfMemoryError.class);
        assertThat(growth.refusedBytes()).isEqualTo(SEGMENT.byteSize());
        growth.releaseRefused();
        assertThat(growth.refusedBytes()).isZero();
    }

    @Test
    void aBlockFreedAfterTheSearchServesWithoutASegment() {
        AddressRangeMap ranges = new AddressRangeMap();
        SegmentGrowth growth = growth(ranges);
        Shard shard = shard();
        long address = growth.grow(shard, 2 << 20, false);
        shard.free(ranges.find(address), address, 0, 0x1000, new RecordedUses());
        assertThat(growth.grow(shard, 2 << 20, false)).isEqualTo(address);
        verify(source).acquire(anyLong(), anyLong(), anyInt());
    }
}
