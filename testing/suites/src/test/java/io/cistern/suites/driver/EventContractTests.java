package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.Test;

/// Events mark positions in a stream, and measure the time between them.
abstract class EventContractTests extends DriverContractTests {
    EventContractTests(DriverContract suite) {
        super(suite);
    }

    private long timedEvent() {
        long event = driver.events().createTimed(DEVICE);
        afterwards(() -> driver.events().destroy(DEVICE, event));
        return event;
    }

    private boolean passed(long event) {
        return driver.events().hasPassed(DEVICE, event);
    }

    private void assertNoTime(long start, long end, CudaResult result) {
        assertFails(() -> driver.events().elapsedMillis(DEVICE, start, end), DriverCall.EVENT_ELAPSED_TIME, result);
    }

    @Test
    void anEventNeverRecordedHasPassed() {
        long event = event();
        assertThat(passed(event)).isTrue();
        driver.events().synchronize(DEVICE, event);
    }

    @Test
    void anEventPassesWhenItsStreamGetsThere() {
        StreamLatch latch = latch();
        long stream = stream();
        latch.hold(stream);
        long event = eventOn(stream);
        assertThat(passed(event)).isFalse();
        latch.release();
        driver.events().synchronize(DEVICE, event);
        assertThat(passed(event)).isTrue();
    }

    @Test
    void workAfterTheMarkDoesNotMatter() {
        StreamLatch latch = latch();
        long stream = stream();
        long event = eventOn(stream);
        latch.hold(stream);
        driver.events().synchronize(DEVICE, event);
        assertThat(passed(event)).isTrue();
    }

    @Test
    void recordingAgainForgetsTheEarlierMark() {
        StreamLatch latch = latch();
        long held = stream();
        long free = stream();
        long event = eventOn(free);
        driver.events().synchronize(DEVICE, event);
        latch.hold(held);
        driver.events().record(DEVICE, event, held);
        assertThat(passed(event)).isFalse();
        driver.events().record(DEVICE, event, free);
        driver.events().synchronize(DEVICE, event);
        assertThat(passed(event)).isTrue();
    }

    @Test
    void anEventOverAllStreamsPassesWhenTheLastOfThemGetsThere() {
        StreamLatch latch = latch();
        StreamLatch second = latch();
        long held = stream();
        long heldLonger = stream();
        long event = event();
        latch.hold(held);
        second.hold(heldLonger);
        driver.events().recordAll(DEVICE, event);
        assertThat(passed(event)).isFalse();
        latch.release();
        synchronize(held);
        assertThat(passed(event)).isFalse();
        second.release();
        driver.events().synchronize(DEVICE, event);
        assertThat(passed(event)).isTrue();
    }

    @Test
    void workAfterAMarkOverAllStreamsDoesNotMatter() {
        StreamLatch latch = latch();
        long stream = stream();
        long event = event();
        driver.events().recordAll(DEVICE, event);
        latch.hold(stream);
        driver.events().synchronize(DEVICE, event);
        assertThat(passed(event)).isTrue();
    }

    @Test
    void aStreamWaitsForAnEventOverAllStreamsOnTheDevice() {
        StreamLatch latch = latch();
        long held = stream();
        long later = stream();
        long event = event();
        latch.hold(held);
        driver.events().recordAll(DEVICE, event);
        driver.streams().await(DEVICE, later, event);
        assertThat(driver.streams().isIdle(DEVICE, later)).isFalse();
        latch.release();
        synchronize(later);
        assertThat(driver.streams().isIdle(DEVICE, held)).isTrue();
    }

    @Test
    void theTimeBetweenTwoMarksGrowsWithTheWorkBetweenThem() {
        long stream = stream();
        long start = timedEvent();
        long end = timedEvent();
        long address = linear(64 * MIB);
        driver.events().record(DEVICE, start, stream);
        for (int i = 0; i < 20; i++) {
            driver.copies().fillBytes(DEVICE, address, (byte) i, 64 * MIB, stream);
        }
        driver.events().record(DEVICE, end, stream);
        driver.events().synchronize(DEVICE, end);
        // 1.25 GiB written: no device writes 100 TB/s.
        assertThat(driver.events().elapsedMillis(DEVICE, start, end)).isGreaterThan(0.0125f);
        assertThat(driver.events().elapsedMillis(DEVICE, start, start)).isZero();
    }

    @Test
    void aMarkNotYetPassedHasNoTime() {
        StreamLatch latch = latch();
        long stream = stream();
        long start = timedEvent();
        long end = timedEvent();
        driver.events().record(DEVICE, start, stream);
        latch.hold(stream);
        driver.events().record(DEVICE, end, stream);
        assertNoTime(start, end, CudaResult.NOT_READY);
    }

    @Test
    void anUntimedEventHasNoTime() {
        long stream = stream();
        long timed = timedEvent();
        driver.events().record(DEVICE, timed, stream);
        long untimed = eventOn(stream);
        synchronize(stream);
        assertNoTime(timed, untimed, CudaResult.INVALID_HANDLE);
        assertNoTime(untimed, timed, CudaResult.INVALID_HANDLE);
    }

    @Test
    void anEventNeverRecordedHasNoTime() {
        long stream = stream();
        long recorded = timedEvent();
        driver.events().record(DEVICE, recorded, stream);
        synchronize(stream);
        assertNoTime(recorded, timedEvent(), CudaResult.INVALID_HANDLE);
    }
}
