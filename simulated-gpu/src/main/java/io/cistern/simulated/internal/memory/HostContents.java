package io.cistern.simulated.internal.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/// Pinned host memory: the program's own native memory. Accesses after the program freed it throw, like the
/// segment's.
public record HostContents(MemorySegment memory) implements Contents {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final int WORD_BYTES = Integer.BYTES;
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

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
            if (size >= 2 * WORD_BYTES && Arrays.mismatch(buffer, 0, size - WORD_BYTES, buffer, WORD_BYTES, size) < 0) {
                sink.pattern(at, size, Contents.shifted((int) WORD.get(buffer, 0), at));
            } else {
                sink.data(at, buffer, 0, size);
            }
        }
    }
}
