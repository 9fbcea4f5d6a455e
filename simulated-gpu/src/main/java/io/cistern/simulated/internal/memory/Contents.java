package io.cistern.simulated.internal.memory;

import java.lang.foreign.MemorySegment;

/// The bytes of one piece of memory, by offset. The words of a fill lie on multiples of 4 from offset 0, lowest
/// byte first.
public interface Contents {
    /// Sets bytes to a repeated word; the byte at offset `i` becomes byte `i mod 4` of the word.
    void fill(long offset, long byteSize, int word);

    /// Writes bytes.
    void write(long offset, byte[] source, int sourceOffset, int byteSize);

    /// Passes a range to a sink in order; parts that are known to be patterns come as patterns.
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

    /// Copies bytes to host memory.
    static void copyOut(Contents source, long offset, MemorySegment target, long byteSize) {
        source.forEachRun(offset, byteSize, new HostSink(target, offset));
    }

    /// Writes bytes of host memory.
    static void copyIn(Contents target, long offset, MemorySegment source, long byteSize) {
        byte[] buffer = new byte[(int) Math.min(byteSize, 1 << 16)];
        for (long at = 0; at < byteSize; at += buffer.length) {
            int size = (int) Math.min(buffer.length, byteSize - at);
            MemorySegment.copy(source, java.lang.foreign.ValueLayout.JAVA_BYTE, at, buffer, 0, size);
            target.write(offset + at, buffer, 0, size);
        }
    }
}
