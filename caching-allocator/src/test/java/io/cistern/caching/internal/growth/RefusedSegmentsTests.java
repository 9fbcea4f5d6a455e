package io.cistern.caching.internal.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import org.junit.jupiter.api.Test;

class RefusedSegmentsTests {
    private static final Segment SEGMENT = new Segment(1 << 20, 2 << 20, 0);

    private final RangeSource source = mock(RangeSource.class);
    private final DeviceCounters counters = mock(DeviceCounters.class);
    private final RefusedSegments refused = new RefusedSegments(source, counters);

    private void keep() {
        refused.begin();
        refused.keep(SEGMENT);
        refused.end();
    }

    @Test
    void aSegmentCountsAsReservedUntilItsSourceTakesIt() {
        doThrow(new CudaException(DriverCall.MEM_FREE, CudaResult.NOT_PERMITTED.code(), "in a test"))
                .doNothing()
                .when(source)
                .release(SEGMENT);
        keep();
        verify(counters).acquired(SEGMENT.address(), SEGMENT.byteSize());

        refused.releaseAll();
        assertThat(refused.byteSize()).isEqualTo(SEGMENT.byteSize());
        verify(counters, never()).released(SEGMENT.byteSize());

        refused.releaseAll();
        assertThat(refused.byteSize()).isZero();
        verify(counters).released(SEGMENT.byteSize());
    }

    @Test
    void othersGrowWhileTheSourceTakesOne() {
        keep();
        doAnswer(_ -> {
                    assertThat(Thread.holdsLock(refused)).isFalse();
                    return null;
                })
                .when(source)
                .release(SEGMENT);

        refused.releaseAll();

        assertThat(refused.byteSize()).isZero();
    }
}
