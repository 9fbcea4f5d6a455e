package io.cistern.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/// The listeners that hear of a waiting thread. The process has one list of them.
@Isolated
class RestingThreadsTests {
    private final List<String> log = new ArrayList<>();
    private final Runnable removeFirst = add("first");
    private final Runnable removeSecond = add("second");

    private Runnable add(String name) {
        return RestingThreads.add(() -> {
            log.add(name + " rests");
            return () -> log.add(name + " goes on");
        });
    }

    @AfterEach
    void remove() {
        removeFirst.run();
        removeSecond.run();
    }

    @Test
    void eachIsToldBeforeAndAfterAWait() {
        assertThat(RestingThreads.during(() -> log.add("waits"))).isTrue();
        assertThat(log).containsExactly("first rests", "second rests", "waits", "second goes on", "first goes on");
    }

    @Test
    void theyGoOnAfterAWaitThatFails() {
        assertThatIllegalStateException()
                .isThrownBy(() -> RestingThreads.during(() -> {
                    throw new IllegalStateException("no turn");
                }));
        assertThat(log).endsWith("second goes on", "first goes on");
    }

    @Test
    void whoIsRemovedIsToldNothing() {
        removeFirst.run();
        assertThat(RestingThreads.during(() -> "waited")).isEqualTo("waited");
        assertThat(log).containsExactly("second rests", "second goes on");
        removeSecond.run();
        assertThat(RestingThreads.during(() -> "waited")).isEqualTo("waited");
        assertThat(log).hasSize(2);
    }
}
