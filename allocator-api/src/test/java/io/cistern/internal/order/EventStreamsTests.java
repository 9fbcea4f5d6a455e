package io.cistern.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.simulated.SimulatedGpu;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Streams that stand for events: each is idle once the events are over that it was given for, and not before.
class EventStreamsTests {
    private static final int MOST = 16;
    private static final long LONG_NANOS = 1_000_000_000_000L;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final EventOrder order = new EventOrder(gpu, 64);
    private final EventStreams streams = new EventStreams(gpu, order, 2);
    private final List<Long> events = new ArrayList<>();

    @AfterEach
    void close() {
        for (int device = 0; device < 2; device++) {
            if (gpu.devices().isUsed(device)) {
                gpu.devices().synchronize(device);
            }
        }
        streams.close((_, _) -> {});
        events.forEach(each -> order.release(0, each));
        order.close();
        assertThat(gpu.calls().of(DriverCall.EVENT_DESTROY))
                .isEqualTo(gpu.calls().of(DriverCall.EVENT_CREATE));
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    /// An event after long work on a new stream.
    private long busyEvent() {
        long stream = gpu.streams().create(0);
        gpu.keepBusy(0, stream, LONG_NANOS);
        events.add(order.record(0, stream));
        return events.getLast();
    }

    private boolean isIdle(long stream) {
        return gpu.streams().isIdle(0, stream);
    }

    @Test
    void aStreamEndsAfterItsEvent() {
        long stream = streams.after(0, busyEvent());
        assertThat(stream).isGreaterThan(Streams.PER_THREAD_DEFAULT);
        assertThat(isIdle(stream)).isFalse();
        gpu.devices().synchronize(0);
        assertThat(isIdle(stream)).isTrue();
        assertThat(streams.after(0, busyEvent())).as("used again").isEqualTo(stream);
    }

    @Test
    void eventsShareStreamsOnlyWhenVeryManyAreUnderWay() {
        Set<Long> different = new LinkedHashSet<>();
        for (int i = 0; i < MOST; i++) {
            different.add(streams.after(0, busyEvent()));
        }
        assertThat(different).hasSize(MOST);
        Set<Long> shared = new LinkedHashSet<>();
        for (int i = 0; i < MOST; i++) {
            shared.add(streams.after(0, busyEvent()));
        }
        assertThat(shared).as("in turn").hasSize(MOST).isEqualTo(different);
    }

    /// The query whether the captured stream is idle would end the capture.
    @Test
    void aStreamThatWaitsForAnEventOfACaptureIsLeftAlone() {
        long captured = gpu.streams().create(0);
        gpu.graphs().shelter(0);
        gpu.graphs().beginCapture(0, captured, CaptureMode.RELAXED);
        long event = gpu.events().create(0);
        gpu.events().record(0, event, captured);
        long joined = streams.after(0, event);
        assertThat(streams.after(0, busyEvent())).isNotEqualTo(joined);
        gpu.events().record(0, event, joined);
        gpu.streams().await(0, captured, event);
        gpu.graphs().destroy(0, gpu.graphs().endCapture(0, captured));
        gpu.graphs().unshelter(0);
        gpu.events().destroy(0, event);
        assertThat(streams.after(0, busyEvent())).as("after the capture").isEqualTo(joined);
    }

    @Test
    void theReadyStreamWaitsForNothing() {
        long ready = streams.ready(0);
        assertThat(ready).isGreaterThan(Streams.PER_THREAD_DEFAULT);
        assertThat(streams.after(0, busyEvent())).isNotEqualTo(ready);
        assertThat(streams.ready(0)).isEqualTo(ready);
        assertThat(isIdle(ready)).isTrue();
    }

    @Test
    void aStreamBehindAllEndsAfterTheWorkOfAllStreams() {
        busyEvent();
        long behind = streams.behindAll(0);
        assertThat(behind).isGreaterThan(Streams.PER_THREAD_DEFAULT);
        assertThat(isIdle(behind)).isFalse();
        gpu.devices().synchronize(0);
        assertThat(isIdle(behind)).isTrue();
    }

    @Test
    void ifTheDriverRefusesAStreamTheHostWaits() {
        long stream = gpu.streams().create(0);
        gpu.keepBusy(0, stream, 1_000_000);
        gpu.faults().failOn(DriverCall.STREAM_CREATE, 0, 1, CudaResult.OUT_OF_MEMORY);
        assertThat(streams.behindAll(0)).isEqualTo(Streams.LEGACY_DEFAULT);
        assertThat(isIdle(stream)).isTrue();
    }

    @Test
    void allWorkOfTheDevicesInUseIsAwaited() {
        long stream = gpu.streams().create(1);
        gpu.keepBusy(1, stream, 1_000_000);
        streams.awaitAllWork();
        assertThat(gpu.streams().isIdle(1, stream)).isTrue();
        assertThat(gpu.devices().isUsed(0)).as("the other device").isFalse();
    }

    @Test
    void eachStreamIsToldOfBeforeItIsDestroyed() {
        Set<Long> made = Set.of(streams.after(0, busyEvent()), streams.after(0, busyEvent()), streams.ready(0));
        long destroyed = gpu.calls().of(DriverCall.STREAM_DESTROY);
        List<Long> told = new ArrayList<>();
        streams.close((device, stream) -> {
            assertThat(device).isZero();
            assertThat(gpu.streams().isBlocking(device, stream))
                    .as("still there")
                    .isFalse();
            told.add(stream);
        });
        assertThat(told).containsExactlyInAnyOrderElementsOf(made);
        assertThat(gpu.calls().of(DriverCall.STREAM_DESTROY) - destroyed).isEqualTo(made.size());
        streams.close((_, stream) -> told.add(stream));
        assertThat(told).as("a second time").hasSize(made.size());
    }

    @Test
    void closingGoesOnPastFailures() {
        streams.after(0, busyEvent());
        streams.after(0, busyEvent());
        gpu.faults().failOn(DriverCall.STREAM_DESTROY, 0, 4, CudaResult.UNKNOWN);
        long destroyed = gpu.calls().of(DriverCall.STREAM_DESTROY);
        assertThatThrownBy(() -> streams.close((_, _) -> {
                    throw new IllegalStateException("ending");
                }))
                .isInstanceOf(IllegalStateException.class)
                .satisfies(
                        failure -> assertThat(failure.getSuppressed()).hasAtLeastOneElementOfType(CudaException.class));
        assertThat(gpu.calls().of(DriverCall.STREAM_DESTROY) - destroyed).isEqualTo(4 + 1);
    }

    @Test
    void afterTheEndTheHostWaits() {
        streams.close((_, _) -> {});
        long stream = gpu.streams().create(0);
        gpu.keepBusy(0, stream, 1_000_000);
        events.add(order.record(0, stream));
        assertThat(streams.after(0, events.getLast())).isEqualTo(Streams.LEGACY_DEFAULT);
        assertThat(isIdle(stream)).isTrue();
    }
}
