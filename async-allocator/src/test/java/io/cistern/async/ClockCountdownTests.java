package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// When threads read the clock, at calls that take so many nanoseconds each.
class ClockCountdownTests {
    private static final long PLANNED_NANOS = 50_000;

    private static final long BEGIN_NANOS = 1L << 50;

    private final ClockCountdown countdown = new ClockCountdown(PLANNED_NANOS, BEGIN_NANOS);
    private long nanos = BEGIN_NANOS;

    /// Calls until the clock is read.
    private int callsUntilDue(long nanosPerCall, long counts) {
        int calls = 0;
        boolean due;
        do {
            nanos += nanosPerCall;
            calls++;
            due = countdown.isDue(counts);
        } while (!due);
        countdown.read(nanos);
        return calls;
    }

    @Test
    void theFirstCallReadsTheClock() {
        assertThat(callsUntilDue(1, 1)).isEqualTo(1);
    }

    @Test
    void quickCallsReadItWithEach31st() {
        callsUntilDue(1, 1);
        assertThat(callsUntilDue(500, 1)).isEqualTo(ClockCountdown.MAX_CALLS);
        assertThat(callsUntilDue(500, 1)).isEqualTo(ClockCountdown.MAX_CALLS);
    }

    @Test
    void callsThatTakeATenthOfTheTimeReadItAboutTenTimesAsOften() {
        callsUntilDue(PLANNED_NANOS / 10, 1);
        callsUntilDue(PLANNED_NANOS / 10, 1);
        assertThat(callsUntilDue(PLANNED_NANOS / 10, 1)).isBetween(9, 11);
    }

    @Test
    void whoCallsOnceInAWhileReadsItWithEveryCall() {
        callsUntilDue(1_000_000, 1);
        assertThat(callsUntilDue(1_000_000, 1)).isEqualTo(1);
    }

    @Test
    void callsThatCountMoreReadItSooner() {
        callsUntilDue(1, 1);
        assertThat(callsUntilDue(1, 8)).isEqualTo(4);
    }

    /// Their calls are neither lost nor counted twice: each has its 31.
    @Test
    void otherThreadsDoNotPutItOff() throws InterruptedException {
        callsUntilDue(1, 1);
        for (int call = 1; call < ClockCountdown.MAX_CALLS; call++) {
            assertThat(countdown.isDue(1)).isFalse();
        }
        Thread other = Thread.ofPlatform().unstarted(this::hundredCountdowns);
        while ((other.threadId() - Thread.currentThread().threadId()) % 64 == 0) {
            other = Thread.ofPlatform().unstarted(this::hundredCountdowns);
        }
        other.start();
        other.join();
        assertThat(countdown.isDue(1)).isTrue();
    }

    private void hundredCountdowns() {
        for (int turn = 0; turn < 100; turn++) {
            callsUntilDue(500, 1);
        }
    }
}
