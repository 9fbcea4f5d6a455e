package io.cistern.cuda.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class ProcessFenceTests {
    private static final VarHandle HOT = handle("hot");
    private static final VarHandle RARE = handle("rare");
    private static final int LONGEST_SPIN = 10_000;

    private int hot;
    private int rare;
    private volatile int begun;
    private volatile int ended;

    @Test
    @EnabledOnOs(OS.LINUX)
    void worksOnLinux() {
        assertThat(ProcessFence.isSupported()).isTrue();
        ProcessFence.everywhere();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void oneSideFencesForBoth() throws InterruptedException {
        oneSideFencesForBoth(ProcessFence::everywhere, 100_000);
    }

    @Test
    void stoppingAllThreadsFencesForBoth() throws InterruptedException {
        oneSideFencesForBoth(ProcessFence::stopAll, 10_000);
    }

    /// Each side writes its word and reads the other's: without a fence both may read 0, here one must see the
    /// other. Both begin a round nearly together, at a distance that changes: so without a fence some rounds in a
    /// thousand fail.
    private void oneSideFencesForBoth(Runnable fence, int rounds) throws InterruptedException {
        int[] seenByHot = new int[rounds];
        int[] seenByRare = new int[rounds];
        Thread other = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < rounds; i++) {
                for (int spins = 0; begun <= i; spins++) {
                    pause(spins);
                }
                HOT.setOpaque(this, i + 1);
                VarHandle.acquireFence();
                seenByHot[i] = (int) RARE.getOpaque(this);
                ended = i + 1;
            }
        });
        for (int i = 0; i < rounds; i++) {
            begun = i + 1;
            for (int distance = i % 64; distance > 0; distance--) {
                Thread.onSpinWait();
            }
            RARE.setOpaque(this, i + 1);
            fence.run();
            seenByRare[i] = (int) HOT.getOpaque(this);
            for (int spins = 0; ended <= i; spins++) {
                pause(spins);
            }
        }
        other.join();
        for (int i = 0; i < rounds; i++) {
            assertThat(seenByHot[i] > i || seenByRare[i] > i).as("round %d", i).isTrue();
        }
    }

    /// The other thread may have no processor: then it gets this one.
    private static void pause(int spins) {
        if (spins < LONGEST_SPIN) {
            Thread.onSpinWait();
        } else {
            Thread.yield();
        }
    }

    private static VarHandle handle(String field) {
        try {
            return MethodHandles.lookup().findVarHandle(ProcessFenceTests.class, field, int.class);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }
}
