package io.cistern.examples.spark.columns;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Bits of a column, the first one lowest in the first byte.
final class Bits {
    private Bits() {}

    static boolean get(MemorySegment bits, long index) {
        return (bits.get(ValueLayout.JAVA_BYTE, index / 8) >> index % 8 & 1) != 0;
    }

    static void set(MemorySegment bits, long index, boolean value) {
        byte eight = bits.get(ValueLayout.JAVA_BYTE, index / 8);
        int bit = 1 << index % 8;
        bits.set(ValueLayout.JAVA_BYTE, index / 8, (byte) (value ? eight | bit : eight & ~bit));
    }

    /// Returns the bytes that hold a number of bits.
    static long byteSize(long count) {
        return (count + 7) / 8;
    }
}
