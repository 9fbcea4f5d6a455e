package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.EventSink;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Memory on the host is released once, whatever the driver refuses.
final class HostPagesTests {
    private static final long SIZE = 2 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(SIZE).build();
    private final PhysicalPages pages =
            new PhysicalPages(0, gpu, source(), new DeviceCounters(0, mock(EventSink.class)));

    private static PageSource source() {
        PageSource source = mock(PageSource.class);
        when(source.traits(0)).thenReturn(new PageTraits(SIZE, "device", "none", false));
        return source;
    }

    private Page created() {
        Page page = new Page(0, SIZE, mock(PageArena.class), 1 << 30);
        pages.createOnHost(page);
        return page;
    }

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aDriverThatDoesNotKnowTheQuestionHasNone() {
        assertThat(pages.canUseHost()).isTrue();
        gpu.faults().failOn(DriverCall.DEVICE_GET_ATTRIBUTE, 0, 1, CudaResult.INVALID_VALUE);
        assertThat(pages.canUseHost()).isFalse();
    }

    @Test
    void itTakesNoneOfTheDevice() {
        Page page = created();
        assertThat(page.handle).isNotZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(SIZE);
        pages.release(page);
        assertReleases(1);
    }

    @Test
    void whatTheDriverKeepsGoesWithTheNext() {
        Page first = created();
        Page second = created();
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.UNKNOWN);
        pages.release(first);
        assertReleases(1);
        pages.release(second);
        assertReleases(3);
        pages.releaseRefused();
        assertReleases(3);
    }

    @Test
    void orItGoesLater() {
        Page page = created();
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 2, CudaResult.UNKNOWN);
        pages.release(page);
        pages.releaseRefused();
        assertReleases(2);
        pages.releaseRefused();
        pages.releaseRefused();
        assertReleases(3);
    }

    /// Another one may have its number.
    @Test
    void aHandleThatTheDriverDoesNotKnowIsNotTriedAgain() {
        Page page = created();
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.INVALID_VALUE);
        pages.release(page);
        pages.releaseRefused();
        assertReleases(1);
    }

    private void assertReleases(int count) {
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isEqualTo(count);
    }
}
