package io.cistern.caching.internal.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Memory on the host is released once, whatever the driver refuses.
final class HostPagesTests {
    private static final long SIZE = 2 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(SIZE).build();
    private final HostPages pages = new HostPages(gpu, 0);

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aDriverThatDoesNotKnowTheQuestionHasNone() {
        assertThat(pages.isAvailable()).isTrue();
        gpu.faults().failOn(DriverCall.DEVICE_GET_ATTRIBUTE, 0, 1, CudaResult.INVALID_VALUE);
        assertThat(pages.isAvailable()).isFalse();
    }

    @Test
    void itTakesNoneOfTheDevice() {
        long handle = pages.create(SIZE);
        assertThat(handle).isNotZero();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(SIZE);
        pages.release(handle, SIZE);
        assertReleases(1);
    }

    @Test
    void whatTheDriverKeepsGoesWithTheNext() {
        long first = pages.create(SIZE);
        long second = pages.create(SIZE);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.UNKNOWN);
        pages.release(first, SIZE);
        assertReleases(1);
        pages.release(second, SIZE);
        assertReleases(3);
        pages.releaseRefused();
        assertReleases(3);
    }

    @Test
    void orItGoesLater() {
        long handle = pages.create(SIZE);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 2, CudaResult.UNKNOWN);
        pages.release(handle, SIZE);
        pages.releaseRefused();
        assertReleases(2);
        pages.releaseRefused();
        pages.releaseRefused();
        assertReleases(3);
    }

    /// Another one may have its number.
    @Test
    void aHandleThatTheDriverDoesNotKnowIsNotTriedAgain() {
        long handle = pages.create(SIZE);
        gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, CudaResult.INVALID_VALUE);
        pages.release(handle, SIZE);
        pages.releaseRefused();
        assertReleases(1);
    }

    private void assertReleases(int count) {
        assertThat(gpu.calls().of(DriverCall.MEM_RELEASE)).isEqualTo(count);
    }
}
