package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The arithmetic of the simulation, at its edges.
class ReductionTests {
    @Test
    void everySmallFloatComesBackFromItsNumber() {
        for (int code = 0; code < 256; code++) {
            byte bits = (byte) code;
            if (!Float.isNaN(SmallFloats.fromE4m3(bits))) {
                assertThat(SmallFloats.toE4m3(SmallFloats.fromE4m3(bits))).isEqualTo(bits);
            }
            if (!Float.isNaN(SmallFloats.fromE5m2(bits))) {
                assertThat(SmallFloats.toE5m2(SmallFloats.fromE5m2(bits))).isEqualTo(bits);
            }
        }
        for (int code = 0; code < 1 << 16; code++) {
            short bits = (short) code;
            if (!Float.isNaN(SmallFloats.fromBfloat16(bits))) {
                assertThat(SmallFloats.toBfloat16(SmallFloats.fromBfloat16(bits)))
                        .isEqualTo(bits);
            }
        }
    }

    @Test
    void smallFloatsAreRoundedToTheNearestAndEndAtTheirLargest() {
        assertThat(SmallFloats.fromE4m3(SmallFloats.toE4m3(1e9f))).isEqualTo(448);
        assertThat(SmallFloats.fromE4m3(SmallFloats.toE4m3(17)))
                .as("a tie, to even")
                .isEqualTo(16);
        assertThat(SmallFloats.fromE4m3(SmallFloats.toE4m3(19)))
                .as("a tie, to even")
                .isEqualTo(20);
        assertThat(SmallFloats.fromE5m2(SmallFloats.toE5m2(9))).isEqualTo(8);
        assertThat(SmallFloats.fromE4m3(SmallFloats.toE4m3(Float.NaN))).isNaN();
        assertThat(SmallFloats.fromBfloat16(SmallFloats.toBfloat16(Float.NaN))).isNaN();
    }

    @Test
    void unsignedNumbersAreComparedAndDividedAsSuch() {
        assertThat(longs(DataType.UINT64, ReductionOp.MAX, -1, 5)).isEqualTo(-1);
        assertThat(longs(DataType.INT64, ReductionOp.MAX, -1, 5)).isEqualTo(5);
        assertThat(longs(DataType.UINT64, ReductionOp.AVERAGE, Long.MIN_VALUE, 0))
                .isEqualTo(1L << 62);
        assertThat(longs(DataType.INT64, ReductionOp.SUM, Long.MAX_VALUE, 1)).isEqualTo(Long.MIN_VALUE);
    }

    private static long longs(DataType type, ReductionOp op, long a, long b) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(Long.BYTES);
            List<MemorySegment> given =
                    List.of(arena.allocateFrom(ValueLayout.JAVA_LONG, a), arena.allocateFrom(ValueLayout.JAVA_LONG, b));
            new Reduction(type, op).reduce(given, result, 1);
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }
}
