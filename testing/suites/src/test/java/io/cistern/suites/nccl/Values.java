package io.cistern.suites.nccl;

import io.cistern.nccl.DataType;
import io.cistern.nccl.ReductionOp;
import java.util.Arrays;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/// Encodes small numbers as elements of any type. They are chosen so that every reduction of two ranks is exact
/// in all types: element i of rank r is 1 + r + i mod 3.
///
/// ```
/// sums 3 5 7 · products 2 6 12 · averages 1.5 2.5 3.5 (whole for integers: 1 2 3)     at most 3 significant bits
/// ```
record Values(DataType type) {
    private static final int PERIOD = 3;

    static double of(int rank, int i) {
        return 1.0 + rank + i % PERIOD;
    }

    static double reduced(DataType type, ReductionOp op, int ranks, int i) {
        double[] values =
                IntStream.range(0, ranks).mapToDouble(rank -> of(rank, i)).toArray();
        return switch (op) {
            case SUM -> Arrays.stream(values).sum();
            case PRODUCT -> Arrays.stream(values).reduce(1, (a, b) -> a * b);
            case MAX -> Arrays.stream(values).max().orElseThrow();
            case MIN -> Arrays.stream(values).min().orElseThrow();
            case AVERAGE -> {
                double average = DoubleStream.of(values).sum() / ranks;
                yield isWhole(type) ? Math.floor(average) : average;
            }
        };
    }

    private static boolean isWhole(DataType type) {
        return switch (type) {
            case INT8, UINT8, INT32, UINT32, INT64, UINT64 -> true;
            default -> false;
        };
    }

    /// Returns the bits of a number, lowest byte first. Halves and quarters have the layouts of IEEE and of the
    /// 8-bit formats: sign, exponent, fraction.
    long bits(double value) {
        return switch (type) {
            case INT8, UINT8, INT32, UINT32, INT64, UINT64 -> (long) value;
            case FLOAT32 -> Float.floatToRawIntBits((float) value);
            case FLOAT64 -> Double.doubleToRawLongBits(value);
            case FLOAT16 -> small(value, 15, 10);
            case BFLOAT16 -> small(value, 127, 7);
            case FLOAT8_E4M3 -> small(value, 7, 3);
            case FLOAT8_E5M2 -> small(value, 15, 2);
        };
    }

    /// Returns the bits of a normal, positive number in a format with so few bits.
    private static long small(double value, int bias, int fractionBits) {
        int exponent = Math.getExponent(value);
        double fraction = value / Math.scalb(1.0, exponent) - 1;
        double bits = Math.scalb(fraction, fractionBits);
        if (bits != Math.rint(bits)) {
            throw new IllegalArgumentException(value + " is not exact in " + fractionBits + " bits");
        }
        return (long) (exponent + bias) << fractionBits | (long) bits;
    }

    /// Returns the elements as bytes, one after the other.
    byte[] bytes(int count, java.util.function.IntToDoubleFunction value) {
        int size = type.byteSize();
        byte[] bytes = new byte[count * size];
        for (int i = 0; i < count; i++) {
            long bits = bits(value.applyAsDouble(i));
            for (int b = 0; b < size; b++) {
                bytes[i * size + b] = (byte) (bits >>> (8 * b));
            }
        }
        return bytes;
    }
}
