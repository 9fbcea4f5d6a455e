package io.cistern.cli;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/// A bounded first-in-first-out queue of numbers between one thread that puts and one that takes.
///
/// A ring of slots that hold 0 while empty: so a thread looks at nothing but the slot it is about to use, and each
/// slot's cache line moves once a lap in each direction. Whoever is too fast waits awake, and lets others run now and
/// then.
///
/// **Invariant.** The slots from the taker's position to the putter's, and no others, hold numbers.
final class BenchQueue {
    private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(long[].class);
    private static final int CAPACITY = 1 << 12;
    private static final int LOOKS_BEFORE_YIELD = 1 << 8;

    private final long[] slots = new long[CAPACITY];

    /// Puts a number, which is not 0, in the place of its position, once that is empty.
    ///
    /// @param position how many were put before
    void put(long position, long value) {
        int slot = (int) position & (CAPACITY - 1);
        for (int looks = 0; (long) SLOT.getAcquire(slots, slot) != 0; ) {
            looks = pause(looks);
        }
        SLOT.setRelease(slots, slot, value);
    }

    /// Takes the number at a position, once it is there.
    ///
    /// @param position how many were taken before
    long take(long position) {
        int slot = (int) position & (CAPACITY - 1);
        long value = (long) SLOT.getAcquire(slots, slot);
        for (int looks = 0; value == 0; value = (long) SLOT.getAcquire(slots, slot)) {
            looks = pause(looks);
        }
        SLOT.setRelease(slots, slot, 0L);
        return value;
    }

    @SuppressWarnings("ThreadPriorityCheck") // Nothing but speed depends on the scheduler here.
    private static int pause(int looks) {
        if (looks == LOOKS_BEFORE_YIELD) {
            Thread.yield();
            return 0;
        }
        Thread.onSpinWait();
        return looks + 1;
    }
}
