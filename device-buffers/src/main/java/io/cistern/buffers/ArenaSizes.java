package io.cistern.buffers;

/// What arenas of one name needed, so that the next one begins with memory that suffices.
///
/// The rule: the most that any needed, less an eighth of the difference for each arena that needed less. So one peak
/// is forgotten after a while, and a steady program finds its size after one arena.
final class ArenaSizes {
    /// Of an arena of which nothing is known: the smallest piece that is worth a driver call.
    private static final long FIRST_BYTES = 1L << 20;

    private long bytes;

    synchronized long next() {
        return bytes == 0 ? FIRST_BYTES : bytes;
    }

    synchronized void needed(long needed) {
        bytes = needed >= bytes ? needed : bytes - (bytes - needed) / 8;
    }
}
