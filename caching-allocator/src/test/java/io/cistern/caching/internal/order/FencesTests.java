package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.spi.EventSink;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.mockito.Mockito;

/// What a fence tells, which streams can have one, and the fences after ends of streams, for which any number of
/// threads may wait.
class FencesTests {
    private static final long STREAM = 2;

    private final TestOrder order = new TestOrder();
    private final DeviceCounters counters = new DeviceCounters(0, mock(EventSink.class));
    private final Devices devices = mock(Devices.class);
    private final CudaDriver driver = mock(CudaDriver.class);
    private final Fences fences = new Fences(0, driver, order, counters);

    @BeforeEach
    void connect() {
        when(driver.devices()).thenReturn(devices);
    }

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

    /// A stream ends on one thread while another thread closes the allocator.
    @Test
    void theFenceOfAnEndIsReleasedAlthoughAllWorkFinishesMeanwhile() {
        order.recording = _ -> {
            fences.finishAll();
            fences.releasePassed();
        };
        long end = fences.end(STREAM);
        assertThat(order.openFences()).isZero();
        assertThat(fences.passed(end)).isTrue();
    }

    @Test
    void theHostWaitsForTheWorkBeforeAFence() {
        order.busy.add(STREAM);
        long fence = fences.record(STREAM);
        assertThat(fences.passed(fence)).isFalse();
        assertThat(fences.await(fence)).isTrue();
        assertThat(fences.passed(fence)).isTrue();
        assertThat(counters.counted(CacheEvent.HOST_WAIT)).isEqualTo(1);
        assertThat(fences.await(Fences.PASSED)).isTrue();
        assertThat(counters.counted(CacheEvent.HOST_WAIT))
                .as("there is nothing to wait for")
                .isEqualTo(1);
        fences.release(fence);
        assertThat(order.openFences()).isZero();
    }

    @Test
    void aWaitThatACaptureForbidsIsRefusedAndOtherFailuresAreThrown() {
        long fence = fences.record(STREAM);
        order.waiting = () -> {
            throw failure(CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        };
        assertThat(fences.await(fence)).isFalse();
        order.waiting = () -> {
            throw failure(CudaResult.UNKNOWN);
        };
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> fences.await(fence));
    }

    @Test
    void anEndCanBeWaitedForByStreamsIfItsFenceCan() {
        order.busy.add(STREAM);
        long end = fences.end(STREAM);
        assertThat(fences.awaitable(end)).isTrue();
        order.captured.add(STREAM);
        assertThat(fences.awaitable(end)).isFalse();
        order.busy.clear();
        assertThat(fences.passed(end)).isTrue();
        assertThat(fences.awaitable(end)).as("there is nothing to wait for").isTrue();
    }

    @Test
    void aStreamIsQuietIfAFenceAfterItsWorkHasPassed() {
        order.busy.add(STREAM);
        assertThat(fences.quiet(STREAM)).isFalse();
        order.busy.clear();
        assertThat(fences.quiet(STREAM)).isTrue();
        fences.closed(STREAM, fences.end(STREAM));
        assertThat(fences.quiet(STREAM)).as("nobody may name it").isFalse();
        fences.opened(STREAM);
        assertThat(fences.quiet(STREAM)).isTrue();
        assertThat(order.openFences()).isZero();
    }

    @Test
    void aStreamThatNobodyMayNameIsFencedBehindAll() {
        fences.closed(STREAM, fences.end(STREAM));
        fences.release(fences.record(STREAM));
        assertThat(order.recordedOn).containsExactly(STREAM, TestOrder.ALL);
    }

    @Test
    void aFreeIsFencedBehindAllWhileItsHandleMayMeanAnEndedStream() {
        order.busy.add(STREAM);
        fences.closed(STREAM, fences.end(STREAM));
        fences.opened(STREAM);
        fences.release(fences.recordFree(STREAM));
        fences.closed(STREAM, fences.end(STREAM));
        fences.opened(STREAM);
        order.busy.clear();
        fences.release(fences.recordFree(STREAM));
        assertThat(order.recordedOn).containsExactly(STREAM, TestOrder.ALL, TestOrder.ALL, STREAM);
        fences.releasePassed();
        assertThat(order.openFences()).isZero();
    }

    @Test
    void theDefaultStreamOfAThreadIsNamedOnThatThreadAlone() throws InterruptedException {
        long own = Fences.key(Streams.PER_THREAD_DEFAULT);
        fences.release(fences.record(own));
        Thread other = Thread.ofPlatform().start(() -> fences.release(fences.record(own)));
        other.join();
        order.captured.add(Streams.PER_THREAD_DEFAULT);
        fences.release(fences.record(own));
        assertThat(order.recordedOn).containsExactly(Streams.PER_THREAD_DEFAULT, TestOrder.ALL, TestOrder.ALL);
        assertThat(Fences.key(Streams.LEGACY_DEFAULT)).as("two names").isEqualTo(Fences.key(0));
    }

    @Test
    void theLegacyDefaultStreamIsFencedByItsNameAndNeverAskedAbout() {
        long key = Fences.key(Streams.LEGACY_DEFAULT);
        fences.release(fences.record(key));
        assertThat(order.recordedOn).containsExactly(0L);
        order.independent.add(0L);
        assertThat(fences.independent(key)).isFalse();
    }

    @Test
    void ofEndsThatHaveNotPassedFewAreAsked() {
        for (long stream = 10; stream < 30; stream++) {
            order.busy.add(stream);
            fences.end(stream);
        }
        order.busy.remove(10L);
        order.busy.remove(29L);
        fences.releasePassed();
        assertThat(order.openFences())
                .as("the first was released, the last not reached")
                .isEqualTo(19);
        assertThat(order.questions).isEqualTo(1 + Fences.MAX_LATE);
    }

    @Test
    void afterAWaitForTheContextAllHasFinished() {
        order.busy.add(STREAM);
        long end = fences.end(STREAM);
        fences.finishAll();
        assertThat(fences.passed(end)).isTrue();
        assertThat(fences.record(STREAM)).isEqualTo(Fences.PASSED);
        assertThat(fences.finished(STREAM)).isTrue();
        assertThat(fences.quiet(STREAM)).isTrue();
        assertThat(counters.counted(CacheEvent.SYNCHRONIZE_ALL)).isEqualTo(1);
        assertThat(order.openFences()).isZero();
    }

    @Test
    void aDeadContextHasFinishedAndOneThatRefusesHasNot() {
        Mockito.doThrow(failure(CudaResult.NOT_SUPPORTED)).when(devices).synchronize(0);
        fences.finishAll();
        order.busy.add(STREAM);
        assertThat(fences.finished(STREAM)).isFalse();
        Mockito.doThrow(failure(CudaResult.STREAM_CAPTURE_UNSUPPORTED))
                .when(devices)
                .synchronize(0);
        assertThatExceptionOfType(CudaException.class).isThrownBy(fences::finishAll);
        Mockito.doThrow(failure(CudaResult.ILLEGAL_ADDRESS)).when(devices).synchronize(0);
        fences.finishAll();
        assertThat(fences.finished(STREAM)).isTrue();
    }

    @Test
    void aWaitForTheContextThatIsRefusedOnceIsMadeAgain() {
        Mockito.doThrow(failure(CudaResult.UNKNOWN)).doNothing().when(devices).synchronize(0);
        fences.finishAll();
        order.busy.add(STREAM);
        assertThat(fences.finished(STREAM)).isTrue();
    }

    @Test
    void nobodyWaitsForAFenceOfADeadContext() {
        order.busy.add(STREAM);
        long fence = fences.record(STREAM);
        order.waiting = () -> {
            throw failure(CudaResult.ILLEGAL_ADDRESS);
        };
        Mockito.doThrow(failure(CudaResult.ILLEGAL_ADDRESS)).when(devices).synchronize(0);
        fences.finishAll();
        assertThat(fences.await(fence)).isTrue();
    }

    private static CudaException failure(CudaResult result) {
        return new CudaException(DriverCall.EVENT_SYNCHRONIZE, result.code(), "in a test");
    }

    @Test
    void allHavePassedOnceTheHostHasWaitedForTheContext() {
        order.busy.add(STREAM);
        long fence = fences.record(STREAM);
        fences.finishAll();
        assertThat(fences.passed(fence)).isTrue();
    }
}
