package io.cistern.simulated.internal.memory;

/// The bytes of one piece of memory, by offset. The words of a fill lie on multiples of 4 from offset 0, lowest
/// byte first.
public interface Contents {
    /// Sets bytes to a repeated word; the byte at offset `i` becomes byte `i mod 4` of the word.
    void fill(long offset, long byteSize, int word);

    /// Writes bytes.
    void write(long offset, byte[] source, int sourceOffset, int byteSize);

    /// Passes a range to a sink in order; parts that are known to be patterns are passed as patterns.
    void forEachRun(long offset, long byteSize, RunSink sink);

    /// Receives the runs of a range.
    interface RunSink {
        /// Receives a pattern; the word has the phase of [Contents#fill].
        void pattern(long offset, long byteSize, int word);

        /// Receives bytes, which it must not change or keep.
        void data(long offset, byte[] bytes, int bytesOffset, int byteSize);
    }

    /// Returns the byte of a pattern at an offset.
    static byte byteOf(int word, long offset) {
        return (byte) (word >>> (8 * (int) (offset & 3)));
    }

    /// Returns the word that keeps a pattern's bytes when its offset grows by `shift`.
    static int shifted(int word, long shift) {
        return Integer.rotateLeft(word, 8 * (int) (shift & 3));
    }
}
