package io.cistern.internal.reclaim;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Lists that are there when somebody reads them.
final class LazyListTests {
    private final AtomicInteger makings = new AtomicInteger();

    @Test
    void itIsMadeByTheFirstReaderAndOnce() {
        LazyList<String> list = new LazyList<>() {
            @Override
            List<String> make() {
                makings.incrementAndGet();
                return List.of("made");
            }
        };
        assertThat(makings).hasValue(0);
        assertThat(list).containsExactly("made").isEqualTo(List.of("made"));
        assertThat(makings).hasValue(1);
    }

    @Test
    void whatCantBeMadeIsEmpty() {
        assertThat(new LazyList<String>() {
                    @Override
                    List<String> make() {
                        throw new IllegalStateException("thrown by the test");
                    }
                })
                .isEmpty();
    }

    @Test
    void aReaderWaitsForWhoeverMakesIt() throws Exception {
        CountDownLatch making = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        LazyList<String> list = new LazyList<>() {
            @Override
            List<String> make() {
                making.countDown();
                try {
                    goesOn.await();
                } catch (InterruptedException stop) {
                    Thread.currentThread().interrupt();
                }
                return List.of("made");
            }
        };
        Thread.ofPlatform().start(list::list);
        making.await();
        FutureTask<String> reader = new FutureTask<>(list::getFirst);
        Thread.ofPlatform().start(reader);
        assertThat(reader.isDone()).isFalse();
        goesOn.countDown();
        assertThat(reader.get(10, TimeUnit.SECONDS)).isEqualTo("made");
    }
}
