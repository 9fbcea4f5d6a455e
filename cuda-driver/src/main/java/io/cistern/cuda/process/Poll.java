package io.cistern.cuda.process;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.BitSet;

/// Waits until descriptors are readable (`ppoll`).
public final class Poll {
    private static final short POLLIN = 1;

    /// `int fd; short events; short revents`
    private static final int ENTRY_BYTES = 8;

    private Poll() {}

    static boolean isReadable(int number) throws SystemCallException {
        return !readable(Duration.ZERO, number).isEmpty();
    }

    /// Waits until a descriptor has something to read, has ended, or is broken.
    ///
    /// @param patience the longest time to wait
    /// @param numbers the descriptors' numbers
    /// @return the indices of such descriptors; empty if the time has run out
    /// @throws SystemCallException if the system refuses
    public static BitSet readable(Duration patience, int... numbers) throws SystemCallException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment entries = arena.allocate(Math.max(1, (long) ENTRY_BYTES * numbers.length), Long.BYTES);
            for (int i = 0; i < numbers.length; i++) {
                entries.set(JAVA_INT, (long) ENTRY_BYTES * i, numbers[i]);
                entries.set(JAVA_SHORT, (long) ENTRY_BYTES * i + 4, POLLIN);
            }
            MemorySegment time = arena.allocate(2 * Long.BYTES, Long.BYTES);
            time.set(JAVA_LONG, 0, patience.toSeconds());
            time.set(JAVA_LONG, Long.BYTES, patience.toNanosPart());
            SystemCall.PPOLL.call(entries.address(), numbers.length, time.address(), 0, 0);
            BitSet found = new BitSet();
            for (int i = 0; i < numbers.length; i++) {
                found.set(i, entries.get(JAVA_SHORT, (long) ENTRY_BYTES * i + 6) != 0);
            }
            return found;
        }
    }
}
