package io.cistern.simulated;

import java.lang.foreign.MemorySegment;

/// The bytes of one piece of memory, by offset. A fill's word lies on multiples of 4 from offset 0, lowest byte
/// first.
interface Contents {
    /// Sets bytes to a repeated word; byte `i` becomes byte `i mod 4` of the word.
    void fill(long offset, long byteSize, int word);

    /// Writes bytes.
    void write(long offset, byte[] source, int sourceOffset, int byteSize);

    /// Shows a range in order, as patterns where it is known to be one.
    void forEachRun(long offset, long byteSize, RunSink sink);

    /// Takes the runs of a range.
    interface RunSink {
        /// A pattern; the word has the phase of [Contents#fill].
        void pattern(long offset, long byteSize, int word);

        /// Bytes, not to be changed or kept.
        void data(long offset, byte[] bytes, int bytesOffset, int byteSize);
    }

    /// The byte of a pattern at an offset.
    static byte byteOf(int word, long offset) {
        return (byte) (word >>> (8 * (int) (offset & 3)));
    }

    /// The word to fill with so that a pattern keeps its bytes when its offset grows by `shift`.
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
