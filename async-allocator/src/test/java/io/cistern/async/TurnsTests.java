package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

class TurnsTests extends AsyncFixture {
    private final Turns turns = new Turns();

    private static <T> T onAnotherThread(java.util.concurrent.Callable<T> work) throws Exception {
        FutureTask<T> task = new FutureTask<>(work);
        Thread.ofPlatform().start(task);
        return task.get();
    }

    @Test
    void whoComesAfterAnotherThreadTakesTheTurnAndWhoIsAloneDoesNot() throws Exception {
        assertThat(turns.begin()).isTrue();
        turns.end(true);
        assertThat(turns.begin()).isFalse();
        assertThat(onAnotherThread(turns::begin)).isTrue();
    }

    @Test
    void whoHasWaitedLongEnoughCallsAsWell() throws Exception {
        assertThat(turns.begin()).isTrue();
        assertThat(onAnotherThread(turns::begin)).isFalse();
        turns.end(false);
        assertThat(turns.begin()).as("what another one took is not given back").isFalse();
        turns.end(true);
        assertThat(onAnotherThread(turns::begin)).isTrue();
    }

    @Test
    void threadsAllocateAndFreeInTurns() throws Exception {
        Allocator async = memory.open("async:turns=true");
        List<Thread> team = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            long own = gpu.streams().create(DEVICE);
            team.add(Thread.ofPlatform().start(() -> {
                for (int pair = 0; pair < 200; pair++) {
                    memory.free(async.allocate(MIB, DEVICE, own), own);
                }
            }));
        }
        for (Thread thread : team) {
            thread.join();
        }
        assertThat(figure(async, "allocated_bytes.all.current")).isZero();
    }
}
