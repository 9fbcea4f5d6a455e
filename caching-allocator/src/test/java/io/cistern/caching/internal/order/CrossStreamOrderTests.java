package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.EventSink;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What is remembered of waits between streams.
class CrossStreamOrderTests {
    private final DeviceCounters counters = new DeviceCounters(0, mock(EventSink.class));
    private final TestOrder streams = new TestOrder();
    private final Fences fences = new Fences(0, mock(CudaDriver.class), streams, counters);
    private final AtomicLong clock = new AtomicLong();
    private final CrossStreamOrder order = new CrossStreamOrder(fences, clock, PageReuse.WAIT, counters);
    private final StreamTimeline lasting = begin(1);

    @AfterEach
    void nothingIsLeft() {
        order.close();
        streams.busy.clear();
        fences.releasePassed();
        assertThat(streams.openFences()).isZero();
    }

    @Test
    void waitsForStreamsThatAreNoMoreAreForgotten() {
        List<StreamTimeline> ended = new ArrayList<>(); // so that it is not the garbage collector who forgets them
        for (long key = 2; key < 100; key++) {
            StreamTimeline next = begin(key);
            order.precede(lasting, next, clock.get());
            order.precede(next, lasting, clock.get());
            order.closing(next, fences.end(key));
            order.forget(next);
            ended.add(next);
        }
        assertThat(lasting.awaited).hasSizeLessThan(4);
        assertThat(lasting.awaitedByFence).hasSizeLessThan(4);
        assertThat(ended.getLast().awaitedByFence).hasSizeLessThan(4);
    }

    @Test
    void aWaitForWorkThatGoesOnIsPassedOnHoweverManyFencesCome() {
        StreamTimeline first = begin(2);
        StreamTimeline last = begin(3);
        long freedAt = clock.get();
        order.precede(lasting, first, freedAt);
        for (int i = 0; i < 4; i++) {
            order.precede(last, lasting, clock.get());
        }
        assertThat(order.coveredTime(last, first)).isGreaterThanOrEqualTo(freedAt);
        assertThat(streams.waits).doesNotContain("2→3");
    }

    private StreamTimeline begin(long key) {
        streams.busy.add(key);
        return new StreamTimeline(key, clock.get(), false);
    }
}
