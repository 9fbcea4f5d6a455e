package io.cistern.simulated.internal.memory;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Writes runs into host memory that begins at `base`.
public record HostSink(MemorySegment target, long base) implements Contents.RunSink {
    /// Written word by word; the rest is copied from this part.
    private static final int UNIT_BYTES = 4096;

    @Override
    public void pattern(long offset, long byteSize, int word) {
        long at = offset - base;
        long end = at + byteSize;
        if (word == Contents.shifted(word, 1)) {
            target.asSlice(at, byteSize).fill((byte) word);
            return;
        }
        int phased = Contents.shifted(word, -offset);
        long from = at;
        for (; at + 4 <= Math.min(end, from + UNIT_BYTES); at += 4) {
            target.set(ValueLayout.JAVA_INT_UNALIGNED, at, phased);
        }
        while (at + 4 <= end) { // whole words of what is written already
            long more = Math.min(at - from, (end - at) & -4L);
            MemorySegment.copy(target, from, target, at, more);
            at += more;
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
