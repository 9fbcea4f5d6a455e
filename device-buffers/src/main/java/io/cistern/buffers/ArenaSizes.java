package io.cistern.buffers;

/// Remembers how much arenas of one name needed, so that the next one begins with enough memory.
///
/// An arena that needed more raises the size to its need. Each arena that needed less lowers the size by an eighth
/// of the difference. So one peak is forgotten after a while, and a steady program has its size after one arena.
final class ArenaSizes {
    /// The size for the first arena of a name: the smallest piece that is worth a driver call.
    private static final long FIRST_BYTES = 1L << 20;

    private long bytes;

    synchronized long next() {
        return bytes == 0 ? FIRST_BYTES : bytes;
    }

    synchronized void needed(long needed) {
        bytes = needed >= bytes ? needed : bytes - (bytes - needed) / 8;
    }
}
