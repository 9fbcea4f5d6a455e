package io.cistern.async;

/// Determines after how many of a thread's calls to read the clock: as many as it lately made in a given time, at
/// most 31.
///
/// Each thread counts for itself, in a cache line that no other thread writes, unless the low bits of two ids
/// are equal. So a call costs the same with any number of threads. A thread reads the clock with its first call
/// and then at the latest with each 31st; a thread that calls rarely reads it with every call.
///
/// **Threads.** Any. Writes are plain: if two threads share a line, a lost count only delays a look at the
/// clock.
final class ClockCountdown {
    /// Odd, so that looks fall on allocations and on frees alike if a program alternates between them.
    static final int MAX_CALLS = 31;

    private static final int LINES = 64;

    /// Longs in a line: two cache lines, since processors fetch them in pairs.
    private static final int LINE = 16;

    // Offsets in a line.
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
    /// @param counts how much the call counts
    /// @return whether the thread has to read the clock now and pass the time to [#read]
    boolean isDue(long counts) {
        return (lines[line() + LEFT] -= counts) < 0;
    }

    /// Returns the start of this thread's line. The first line separates the others from the array's header.
    private static int line() {
        return LINE * (1 + ((int) Thread.currentThread().threadId() & (LINES - 1)));
    }

    /// Starts a new count.
    ///
    /// @param nanos the current time
    void read(long nanos) {
        int line = line();
        long nanosPerCall = Math.max(1, (nanos - lines[line + COUNTED_NANOS]) / lines[line + PLANNED]);
        long planned = Math.clamp(nanosPlanned / nanosPerCall, 1, MAX_CALLS) | 1;
        lines[line + COUNTED_NANOS] = nanos;
        lines[line + PLANNED] = planned;
        lines[line + LEFT] = planned - 1;
    }
}
