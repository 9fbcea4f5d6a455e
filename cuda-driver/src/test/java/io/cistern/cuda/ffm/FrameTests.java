package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;

class FrameTests {
    private static final int SLOTS = 64;
    private static final int AGREED = 7;

    private final Set<Frame> frames = Collections.synchronizedSet(Collections.newSetFromMap(new IdentityHashMap<>()));

    /// Native memory of a frame too many is there until the collector runs, which has no reason to.
    @Test
    void virtualThreadsThatMeetAtASlotUseTheSameFramesAgainAndAgain() throws InterruptedException {
        for (int round = 0; round < 4 * SLOTS; round++) {
            CyclicBarrier both = new CyclicBarrier(2);
            List<Thread> threads = List.of(withAgreedId(both), withAgreedId(both));
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertThat(frames).hasSizeBetween(2, SLOTS + 1);
    }

    private Thread withAgreedId(CyclicBarrier both) {
        List<Thread> made = new ArrayList<>();
        do {
            made.add(Thread.ofVirtual().unstarted(() -> hold(both)));
        } while (made.getLast().threadId() % SLOTS != AGREED);
        return made.getLast();
    }

    private void hold(CyclicBarrier both) {
        try (Frame frame = Frame.acquire()) {
            frames.add(frame);
            both.await();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
