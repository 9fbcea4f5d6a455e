package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.EventSink;
import org.junit.jupiter.api.Test;

/// The fence after the end of a stream, for which any number of threads may wait.
class FencesTests {
    private static final long STREAM = 2;

    private final TestOrder order = new TestOrder();
    private final Fences fences =
            new Fences(0, mock(CudaDriver.class), order, new DeviceCounters(0, mock(EventSink.class)));

    @Test
    void aFenceStaysWhileAThreadWaitsForIt() {
        order.busy.add(STREAM);
        long end = fences.end(STREAM);
        order.waiting = () -> {
            order.busy.clear();
            fences.releasePassed();
            assertThat(order.openFences()).isEqualTo(1);
        };
        assertThat(fences.await(end)).isTrue();
        assertThat(order.openFences()).isZero();
    }

    @Test
    void theLastOfTheThreadsThatWaitForAFenceReleasesIt() {
        order.busy.add(STREAM);
        long end = fences.end(STREAM);
        order.waiting = () -> {
            order.waiting = () -> {};
            assertThat(fences.await(end)).as("another thread").isTrue();
            assertThat(order.openFences()).isEqualTo(1);
        };
        assertThat(fences.await(end)).isTrue();
        assertThat(order.openFences()).isZero();
    }

    @Test
    void aWaitThatFailsLeavesTheFenceForTheNext() {
        order.busy.add(STREAM);
        long end = fences.end(STREAM);
        order.waiting = () -> {
            throw new IllegalStateException("the driver's");
        };
        assertThatIllegalStateException().isThrownBy(() -> fences.await(end));
        assertThat(order.openFences()).isEqualTo(1);
        assertThat(fences.passed(end)).isFalse();
        order.waiting = () -> {};
        assertThat(fences.await(end)).isTrue();
        assertThat(fences.passed(end)).isTrue();
        assertThat(order.openFences()).isZero();
    }
}
