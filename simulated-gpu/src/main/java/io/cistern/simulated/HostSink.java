package io.cistern.simulated;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Writes runs into host memory that begins at `base`.
record HostSink(MemorySegment target, long base) implements Contents.RunSink {
    @Override
    public void pattern(long offset, long byteSize, int word) {
        long at = offset - base;
        long end = at + byteSize;
        if (word == Contents.shifted(word, 1)) {
            target.asSlice(at, byteSize).fill((byte) word);
            return;
        }
        int phased = Contents.shifted(word, -offset);
        for (; at + 4 <= end; at += 4) {
            target.set(ValueLayout.JAVA_INT_UNALIGNED, at, phased);
        }
        for (int i = 0; at < end; at++, i++) {
            target.set(ValueLayout.JAVA_BYTE, at, Contents.byteOf(phased, i));
        }
    }

    @Override
    public void data(long offset, byte[] bytes, int bytesOffset, int byteSize) {
        MemorySegment.copy(bytes, bytesOffset, target, ValueLayout.JAVA_BYTE, offset - base, byteSize);
    }
}
