package io.cistern.simulated;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Pinned host memory: the program's own native memory. Accesses after the program gave it back throw, as the
/// segment does.
record HostContents(MemorySegment memory) implements Contents {
    private static final int BUFFER_BYTES = 1 << 16;

    @Override
    public void fill(long offset, long byteSize, int word) {
        new HostSink(memory, 0).pattern(offset, byteSize, word);
    }

    @Override
    public void write(long offset, byte[] source, int sourceOffset, int byteSize) {
        MemorySegment.copy(source, sourceOffset, memory, ValueLayout.JAVA_BYTE, offset, byteSize);
    }

    @Override
    public void forEachRun(long offset, long byteSize, RunSink sink) {
        byte[] buffer = new byte[(int) Math.min(byteSize, BUFFER_BYTES)];
        for (long at = offset; at < offset + byteSize; at += buffer.length) {
            int size = (int) Math.min(buffer.length, offset + byteSize - at);
            MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, at, buffer, 0, size);
            sink.data(at, buffer, 0, size);
        }
    }
}
