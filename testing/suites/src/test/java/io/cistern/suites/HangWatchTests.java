package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

final class HangWatchTests {
    private static final long LONGEST_MILLIS = 60_000;

    /// On a busy machine the thread may begin to wait only after the patience has ended: then once more, with more
    /// of it.
    @Test
    void aThreadThatWaitsForItselfIsLetGoAndToldWhereItWas() {
        String told = "";
        for (long millis = 20; !told.contains("HangWatchTests.waitFor") && millis < LONGEST_MILLIS; millis *= 2) {
            told = toldAfter(millis);
            assertThat(told).contains("the host waited");
        }
        assertThat(told).contains("HangWatchTests.waitFor");
    }

    private static String toldAfter(long millis) {
        CountDownLatch held = new CountDownLatch(1);
        try (HangWatch watch = new HangWatch(Duration.ofMillis(millis), held::countDown)) {
            return catchThrowableOfType(AssertionError.class, () -> watch.run(() -> waitFor(held)))
                    .getMessage();
        }
    }

    @Test
    void whatEndsInTimeIsLeftAlone() {
        CountDownLatch held = new CountDownLatch(1);
        try (HangWatch watch = new HangWatch(Duration.ofHours(1), held::countDown)) {
            watch.run(() -> {});
        }
        assertThat(held.getCount()).isOne();
    }

    private static void waitFor(CountDownLatch held) {
        try {
            held.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
