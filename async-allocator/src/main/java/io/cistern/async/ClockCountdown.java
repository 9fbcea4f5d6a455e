package io.cistern.async;

/// Tells a thread after how many of its calls to read the clock: as many as lately took it a given time, at most
/// 31.
///
/// Each thread counts for itself, in a cache line that no other writes, unless the ids of two are equal in their
/// low bits. So with any number of threads a call costs what it costs with one, and a thread reads the clock with
/// its first call and at the latest with each 31st from then on; one that calls once in a while, with every call.
///
/// **Threads.** Any. Plain words: where two threads share a line, a count that is lost puts a look at the clock
/// off.
final class ClockCountdown {
    /// Odd, so that looks come at allocations and at frees where a program makes one after the other.
    static final int MAX_CALLS = 31;

    private static final int LINES = 64;

    /// Longs a line: two cache lines, since processors fetch them by pairs.
    private static final int LINE = 16;

    // In a line.
    private static final int LEFT = 0;
    private static final int PLANNED = 1;
    private static final int COUNTED_NANOS = 2;

    private final long nanosPlanned;
    private final long[] lines = new long[(LINES + 1) * LINE];

    /// @param nanosPlanned the time that the calls between two looks at the clock should take
    /// @param nanos the time
    ClockCountdown(long nanosPlanned, long nanos) {
        this.nanosPlanned = nanosPlanned;
        for (int line = LINE; line < lines.length; line += LINE) {
            lines[line + PLANNED] = 1;
            lines[line + COUNTED_NANOS] = nanos;
        }
    }

    /// Counts a call of this thread.
    ///
    /// @param counts how much it counts
    /// @return whether to read the clock now, and to tell [#read] what it says
    boolean isDue(long counts) {
        return (lines[line() + LEFT] -= counts) < 0;
    }

    /// The first line keeps the array's header apart.
    private static int line() {
        return LINE * (1 + ((int) Thread.currentThread().threadId() & (LINES - 1)));
    }

    /// Begins a new count.
    void read(long nanos) {
        int line = line();
        long nanosPerCall = Math.max(1, (nanos - lines[line + COUNTED_NANOS]) / lines[line + PLANNED]);
        long planned = Math.clamp(nanosPlanned / nanosPerCall, 1, MAX_CALLS) | 1;
        lines[line + COUNTED_NANOS] = nanos;
        lines[line + PLANNED] = planned;
        lines[line + LEFT] = planned - 1;
    }
}
