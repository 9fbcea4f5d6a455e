package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/// Threads whose ids agree in their low bits have the same entries of the table.
class LanesTests {
    private static final int ENTRIES = 1024;

    private final Lanes lanes = new Lanes();
    private CountDownLatch end = new CountDownLatch(1);
    private final List<Thread> running = new ArrayList<>();

    /// The lane of a new thread whose id has such low bits, and which waits for the end.
    private Lane laneOfRunning(int lowBits) throws Exception {
        CountDownLatch untilEnd = end;
        while (true) { // each thread that is made gets the next id
            CountDownLatch came = new CountDownLatch(1);
            FutureTask<Lane> task = new FutureTask<>(() -> {
                Lane lane = lanes.own();
                assertThat(lanes.own()).isSameAs(lane);
                came.countDown();
                untilEnd.await();
                return lane;
            });
            Thread thread = Thread.ofPlatform().unstarted(task);
            if (thread.threadId() % ENTRIES == lowBits) {
                thread.start();
                running.add(thread);
                came.await();
                return Arrays.stream(lanes.table)
                        .filter(lane -> lane != null && lane.ownerId == thread.threadId())
                        .findFirst()
                        .orElse(null);
            }
        }
    }

    private void endAll() throws Exception {
        end.countDown();
        for (Thread thread : running) {
            thread.join();
        }
    }

    @Test
    void twoFindTheirLaneInTheTableAndTheThirdElsewhere() throws Exception {
        assertThat(laneOfRunning(7)).isNotNull();
        assertThat(laneOfRunning(7)).isNotNull();
        assertThat(laneOfRunning(7)).isNull();
        endAll();
    }

    @Test
    void entriesOfLanesThatWentToOtherThreadsAreFree() throws Exception {
        Set<Lane> left = Set.of(laneOfRunning(7), laneOfRunning(7));
        endAll();
        end = new CountDownLatch(1);
        Set<Lane> inherited = Set.of(laneOfRunning(8), laneOfRunning(9));
        assertThat(inherited).isEqualTo(left);
        assertThat(laneOfRunning(7)).isNotNull().isNotIn(left);
        endAll();
    }
}
