package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Which calls a capture records, from which streams, and how it ends.
abstract class CaptureContractTests extends GraphFixture {
    CaptureContractTests(DriverContract suite) {
        super(suite);
    }

    private CaptureStatus status(long stream) {
        return graphs.captureStatus(DEVICE, stream);
    }

    @Test
    void workRunsWhenTheGraphIsLaunchedAndNotBefore() {
        long address = linear(KIB);
        long stream = stream();
        fill(address, 1, stream);
        begin(stream, CaptureMode.THREAD_LOCAL);
        fill(address, 2, stream);
        long executable = executable(graphOf(stream));
        assertThat(holds(address, 1, stream)).isTrue();
        launch(executable, stream);
        assertThat(holds(address, 2, stream)).isTrue();
    }

    @Test
    void aStreamIsInACaptureFromItsBeginToItsEnd() {
        long stream = stream();
        assertThat(status(stream)).isEqualTo(CaptureStatus.NONE);
        assertThat(graphs.captureId(DEVICE, stream)).isZero();
        begin(stream, CaptureMode.THREAD_LOCAL);
        assertThat(status(stream)).isEqualTo(CaptureStatus.ACTIVE);
        assertThat(graphs.captureId(DEVICE, stream)).isNotZero();
        long graph = graphs.capturingGraph(DEVICE, stream);
        assertThat(graphOf(stream)).isEqualTo(graph);
        assertThat(status(stream)).isEqualTo(CaptureStatus.NONE);
    }

    @Test
    void eachCaptureHasANumberOfItsOwn() {
        long stream = captured(CaptureMode.THREAD_LOCAL);
        long first = graphs.captureId(DEVICE, stream);
        graphOf(stream);
        begin(stream, CaptureMode.THREAD_LOCAL);
        assertThat(graphs.captureId(DEVICE, stream)).isNotEqualTo(first);
        graphOf(stream);
    }

    @Test
    void aStreamJoinsByWaitingForAnEventOfTheCapture() {
        long address = linear(2 * KIB);
        long origin = captured(CaptureMode.THREAD_LOCAL);
        long joined = stream();
        follow(joined, origin);
        assertThat(graphs.captureId(DEVICE, joined)).isEqualTo(graphs.captureId(DEVICE, origin));
        fill(address, 1, joined);
        fill(address + KIB, 2, origin);
        follow(origin, joined);
        long executable = executable(graphOf(origin));
        assertThat(status(joined)).isEqualTo(CaptureStatus.NONE);
        launch(executable, origin);
        assertThat(holds(address, 1, origin)).isTrue();
        assertThat(holds(address + KIB, 2, origin)).isTrue();
    }

    @Test
    void aStreamThatJoinedMustBeWaitedFor() {
        long address = linear(KIB);
        long origin = captured(CaptureMode.THREAD_LOCAL);
        long joined = stream();
        follow(joined, origin);
        fill(address, 1, joined);
        assertFails(
                () -> graphs.endCapture(DEVICE, origin),
                DriverCall.STREAM_END_CAPTURE,
                CudaResult.STREAM_CAPTURE_UNJOINED);
        assertThat(status(origin)).isEqualTo(CaptureStatus.NONE);
        assertThat(status(joined)).isEqualTo(CaptureStatus.NONE);
        fill(address, 3, joined);
        assertThat(holds(address, 3, joined)).isTrue();
    }

    @Test
    void aCaptureEndsWhereItBegan() {
        long origin = captured(CaptureMode.THREAD_LOCAL);
        long joined = stream();
        follow(joined, origin);
        assertFails(
                () -> graphs.endCapture(DEVICE, joined),
                DriverCall.STREAM_END_CAPTURE,
                CudaResult.STREAM_CAPTURE_UNMATCHED);
        abandon(origin);
    }

    @Test
    void workOutsideCantBeWaitedForInside() {
        long outside = stream();
        fill(linear(KIB), 1, outside);
        long event = eventOn(outside);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        assertFails(
                () -> driver.streams().await(DEVICE, stream, event),
                DriverCall.STREAM_WAIT_EVENT,
                CudaResult.STREAM_CAPTURE_ISOLATION);
        assertThat(status(stream)).isEqualTo(CaptureStatus.INVALIDATED);
        assertFails(
                () -> graphs.endCapture(DEVICE, stream),
                DriverCall.STREAM_END_CAPTURE,
                CudaResult.STREAM_CAPTURE_INVALIDATED);
        assertThat(status(stream)).isEqualTo(CaptureStatus.NONE);
    }

    @Test
    void twoCapturesDontBecomeOne() {
        long one = captured(CaptureMode.THREAD_LOCAL);
        long other = captured(CaptureMode.THREAD_LOCAL);
        long event = eventOn(one);
        assertFails(
                () -> driver.streams().await(DEVICE, other, event),
                DriverCall.STREAM_WAIT_EVENT,
                CudaResult.STREAM_CAPTURE_MERGE);
        abandon(one);
        abandon(other);
    }

    @Test
    void noGraphIsInstantiatedWhileTheThreadCaptures() {
        long address = linear(2 * KIB);
        long one = captured(CaptureMode.THREAD_LOCAL);
        long other = captured(CaptureMode.THREAD_LOCAL);
        fill(address, 1, one);
        fill(address + KIB, 2, other);
        long first = graphOf(one);
        long second = graphOf(other);
        launch(executable(first), one);
        launch(executable(second), one);
        assertThat(holds(address, 1, one)).isTrue();
        assertThat(holds(address + KIB, 2, one)).isTrue();
    }

    @Test
    void aCapturedStreamCantBeWaitedForOnTheHost() {
        long stream = captured(CaptureMode.RELAXED);
        assertFails(() -> synchronize(stream), DriverCall.STREAM_SYNCHRONIZE, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        abandon(stream);
    }

    @Test
    void anEventOfACaptureCantBeAsked() {
        long stream = captured(CaptureMode.RELAXED);
        long event = eventOn(stream);
        assertFails(() -> driver.events().hasPassed(DEVICE, event), DriverCall.EVENT_QUERY, CudaResult.CAPTURED_EVENT);
        abandon(stream);
    }

    @Test
    void aMarkOverAllStreamsIsRefusedAndInvalidatesTheCapture() {
        long stream = captured(CaptureMode.RELAXED);
        long event = event();
        assertFails(
                () -> driver.events().recordAll(DEVICE, event),
                DriverCall.CONTEXT_RECORD_EVENT,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        assertThat(status(stream)).isEqualTo(CaptureStatus.INVALIDATED);
        abandon(stream);
    }

    @Test
    void theLegacyDefaultStreamCantBeCaptured() {
        assertFails(
                () -> begin(Streams.LEGACY_DEFAULT, CaptureMode.THREAD_LOCAL),
                DriverCall.STREAM_BEGIN_CAPTURE,
                CudaResult.STREAM_CAPTURE_UNSUPPORTED,
                CudaResult.INVALID_VALUE,
                CudaResult.STREAM_CAPTURE_IMPLICIT);
    }

    @Test
    void theLegacyDefaultStreamIsRefusedWhileOthersAreCaptured() {
        long address = linear(KIB);
        long blocking = driver.streams().create(DEVICE, false, 0);
        afterwards(() -> driver.streams().destroy(DEVICE, blocking));
        begin(blocking, CaptureMode.THREAD_LOCAL);
        assertFails(
                () -> fill(address, 1, Streams.LEGACY_DEFAULT),
                DriverCall.MEMSET_D8_ASYNC,
                CudaResult.STREAM_CAPTURE_IMPLICIT);
        abandon(blocking);
    }

    @Test
    void theNextNodeFollowsTheLatestOfItsStream() {
        long address = linear(KIB);
        long stream = captured(CaptureMode.THREAD_LOCAL);
        assertThat(graphs.captureDependencies(DEVICE, stream)).isEmpty();
        fill(address, 1, stream);
        List<Long> first = graphs.captureDependencies(DEVICE, stream);
        fill(address, 2, stream);
        List<Long> second = graphs.captureDependencies(DEVICE, stream);
        assertThat(first).hasSize(1);
        assertThat(second).hasSize(1);
        assertThat(graphs.dependencies(DEVICE, second.getFirst())).isEqualTo(first);
        assertThat(graphs.nodeCount(DEVICE, graphOf(stream))).isEqualTo(2);
    }

    @Test
    void aHostFunctionRunsInEachLaunch() {
        AtomicInteger ran = new AtomicInteger();
        long stream = captured(CaptureMode.THREAD_LOCAL);
        driver.streams().launchHostFunction(DEVICE, stream, ran::incrementAndGet);
        long executable = executable(graphOf(stream));
        assertThat(ran).hasValue(0);
        launch(executable, stream);
        launch(executable, stream);
        synchronize(stream);
        assertThat(ran).hasValue(2);
    }
}
