package io.cistern.simulated.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/// Counts the words of consecutive runs that differ from `first + step × index`. A word may lie across the
/// border of two runs.
public final class WordScanner implements Contents.RunSink {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    private final int first;
    private final int step;
    private long index;
    private long mismatches;
    private int partWord;
    private int partBytes;

    public WordScanner(int first, int step) {
        this.first = first;
        this.step = step;
    }

    public long mismatches() {
        return mismatches;
    }

    @Override
    public void pattern(long offset, long byteSize, int word) {
        long at = offset;
        long end = offset + byteSize;
        while (at < end && partBytes != 0) {
            take(Contents.byteOf(word, at++));
        }
        long words = (end - at) / 4;
        equalWords(Contents.shifted(word, -at), words);
        at += 4 * words;
        while (at < end) {
            take(Contents.byteOf(word, at++));
        }
    }

    @Override
    public void data(long offset, byte[] bytes, int bytesOffset, int byteSize) {
        int at = bytesOffset;
        int end = bytesOffset + byteSize;
        while (at < end && partBytes != 0) {
            take(bytes[at++]);
        }
        int words = (end - at) / 4;
        int expected = first + step * (int) index;
        int differing = 0;
        for (int word = 0; word < words; word++) {
            differing += (int) INT.get(bytes, at + 4 * word) == expected + step * word ? 0 : 1;
        }
        mismatches += differing;
        index += words;
        at += 4 * words;
        while (at < end) {
            take(bytes[at++]);
        }
    }

    private void equalWords(int word, long count) {
        long matching = 0;
        if (step == 0) {
            matching = word == first ? count : 0;
        } else {
            // A sequence of step 1 has each value only once in 2^32 words.
            long distance = (word - first - (int) index) & 0xffff_ffffL;
            matching = distance < count ? 1 + (count - 1 - distance) / (1L << 32) : 0;
        }
        mismatches += count - matching;
        index += count;
    }

    private void take(byte value) {
        partWord |= (value & 0xff) << (8 * partBytes);
        if (++partBytes == 4) {
            compare(partWord);
            partWord = 0;
            partBytes = 0;
        }
    }

    private void compare(int word) {
        if (word != first + step * (int) index) {
            mismatches++;
        }
        index++;
    }
}
