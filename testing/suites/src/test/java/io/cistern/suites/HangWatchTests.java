package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

final class HangWatchTests {
    @Test
    void aThreadThatWaitsForItselfIsLetGoAndToldWhereItWas() {
        CountDownLatch held = new CountDownLatch(1);
        try (HangWatch watch = new HangWatch(Duration.ofMillis(20), held::countDown)) {
            assertThatThrownBy(() -> watch.run(() -> waitFor(held)))
                    .isInstanceOf(AssertionError.class)
                    .hasMessageContaining("the host waited")
                    .hasMessageContaining("HangWatchTests.waitFor");
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
