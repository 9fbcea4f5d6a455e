package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import io.cistern.caching.options.CachingOption;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryLocation;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.List;
import org.junit.jupiter.api.Test;

/// What a source gives is never above its cap, and what it takes back or refuses counts no more.
final class ReserveCapTests {
    private static final long CAP = 10 << 20;
    private static final long MOST = 6 << 20;
    private static final long REST = CAP - MOST;

    private final PageSource pageSource = mock(PageSource.class);
    private final RangeSource rangeSource = mock(RangeSource.class);
    private final ReserveCap cap = new ReserveCap(0, CAP, CachingOption.MAX_BYTES);
    private final PageSource pages = (PageSource) cap.of(pageSource);
    private final RangeSource ranges = (RangeSource) cap.of(rangeSource);

    @Test
    void pagesCountFromTheirCreationToTheirRelease() {
        when(pageSource.create(anyLong(), anyInt())).thenReturn(7L);
        assertThat(pages.create(MOST, 0)).isEqualTo(7);
        assertRefused(REST + 1);
        pages.create(REST, 0);
        assertRefused(1);
        pages.release(7, REST, 0);
        verify(pageSource).release(7, REST, 0);
        assertRefused(REST + 1);
        pages.create(REST, 0);
    }

    @Test
    void whatTheSourceRefusesCountsNoMore() {
        when(pageSource.create(anyLong(), anyInt()))
                .thenThrow(new CudaException(DriverCall.MEM_CREATE, CudaResult.UNKNOWN.code(), ""))
                .thenReturn(7L);
        assertThatThrownBy(() -> pages.create(CAP, 0)).isInstanceOf(CudaException.class);
        pages.create(CAP, 0);
        assertRefused(1);
    }

    @Test
    void whatTheSourceDoesNotTakeBackStillCounts() {
        doThrow(new CudaException(DriverCall.MEM_RELEASE, CudaResult.UNKNOWN.code(), ""))
                .when(pageSource)
                .release(anyLong(), anyLong(), anyInt());
        pages.create(CAP, 0);
        assertThatThrownBy(() -> pages.release(7, CAP, 0)).isInstanceOf(CudaException.class);
        assertRefused(1);
    }

    @Test
    void segmentsCountWithTheBytesThatCame() {
        Segment segment = new Segment(1 << 20, CAP, 0);
        when(rangeSource.acquire(anyLong(), anyLong(), anyInt())).thenReturn(segment);
        assertThat(ranges.acquire(MOST, 256, 0)).isEqualTo(segment);
        assertRefused(1);
        ranges.release(segment);
        verify(rangeSource).release(segment);
        assertThat(ranges.acquire(CAP, 256, 0)).isEqualTo(segment);
        assertRefused(1);
        assertThat(ranges.tryRelease(segment)).isFalse();
        assertRefused(1);
        when(rangeSource.tryRelease(any())).thenReturn(true);
        assertThat(ranges.tryRelease(segment)).isTrue();
        assertThat(ranges.acquire(CAP, 256, 0)).isEqualTo(segment);
    }

    @Test
    void theRestOfASourceIsWhatItWasWithoutACap() {
        PageTraits traits = new PageTraits(2 << 20, "device", "none", false);
        List<MemoryLocation> accessors = List.of(MemoryLocation.device(0));
        when(pageSource.traits(0)).thenReturn(traits);
        when(pageSource.accessors(0)).thenReturn(accessors);
        assertThat(pages.traits(0)).isEqualTo(traits);
        assertThat(pages.accessors(0)).isEqualTo(accessors);
        assertThat(pages.unmapping(0, 4, 2)).isFalse();
        when(pageSource.unmapping(0, 4, 2)).thenReturn(true);
        assertThat(pages.unmapping(0, 4, 2)).isTrue();
        pages.mapped(0, 4, 2, 7);
        verify(pageSource).mapped(0, 4, 2, 7);
    }

    @Test
    void theErrorNamesTheOptionAtAnyDepth() {
        Throwable refusal = catchThrowable(() -> pages.create(CAP + 1, 0));
        Throwable wrapped = new IllegalStateException(new IllegalStateException(refusal));
        assertThat(ReserveCap.isReached(refusal)).isTrue();
        assertThat(ReserveCap.isReached(wrapped)).isTrue();
        assertThat(refusal).hasMessageContainingAll("0 bytes are reserved", String.valueOf(CAP), "max_bytes");
        assertThat(ReserveCap.isReached(new IllegalStateException(new IllegalStateException())))
                .isFalse();
        assertThat(ReserveCap.isReached(new DeviceOutOfMemoryException(1, 0, "the driver")))
                .isFalse();
    }

    private void assertRefused(long byteSize) {
        assertThatThrownBy(() -> pages.create(byteSize, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
    }

    @Test
    void aLimitIsSetByItsBytesOrItsShare() {
        ReserveLimit none = new ReserveLimit(Long.MAX_VALUE, 1, false);
        assertThat(none.isSet()).isFalse();
        assertThat(none.capBytes(100)).isEqualTo(Long.MAX_VALUE);
        ReserveLimit bytes = new ReserveLimit(MOST, 1, false);
        assertThat(bytes.isSet()).isTrue();
        assertThat(bytes.capBytes(100)).isEqualTo(MOST);
        assertThat(bytes.option()).isEqualTo(CachingOption.MAX_BYTES);
        ReserveLimit share = new ReserveLimit(Long.MAX_VALUE, 0.5, false);
        assertThat(share.isSet()).isTrue();
        assertThat(share.capBytes(100)).isEqualTo(50);
        assertThat(share.option()).isEqualTo(CachingOption.PER_PROCESS_MEMORY_FRACTION);
    }
}
