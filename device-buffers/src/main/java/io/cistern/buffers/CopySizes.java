package io.cistern.buffers;

/// Whether what is copied fits where it goes.
final class CopySizes {
    private CopySizes() {}

    /// @param from what is copied, for people: `source`
    /// @param to where it goes, for people: `buffer`
    /// @throws IndexOutOfBoundsException if it is longer; the message has both sizes
    static void requireFits(String from, long fromBytes, String to, long toBytes) {
        if (fromBytes > toBytes) {
            throw new IndexOutOfBoundsException(from + " has " + fromBytes + " bytes, " + to + " " + toBytes);
        }
    }
}
