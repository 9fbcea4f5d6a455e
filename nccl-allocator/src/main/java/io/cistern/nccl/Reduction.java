package io.cistern.nccl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// Reduces the elements of several ranks to one, as NCCL's kernels do: integers wrap, averages of integers are
/// truncated, and floating point is rounded once, at the end. Simulated collectives use it.
///
/// @param type the type of the elements
/// @param op the operation that reduces the elements
public record Reduction(DataType type, ReductionOp op) {
    /// Reduces the elements at each index.
    ///
    /// @param given the elements of each rank, in the order of ranks
    /// @param result the memory for the results; may be one of `given`
    /// @param count the number of elements
    public void reduce(List<MemorySegment> given, MemorySegment result, long count) {
        for (long i = 0; i < count; i++) {
            if (isWhole()) {
                writeLong(result, i, reduceLongs(given, i));
            } else {
                writeDouble(result, i, reduceDoubles(given, i));
            }
        }
    }

    private boolean isWhole() {
        return switch (type) {
            case INT8, UINT8, INT32, UINT32, INT64, UINT64 -> true;
            default -> false;
        };
    }

    private long reduceLongs(List<MemorySegment> given, long i) {
        long value = readLong(given.getFirst(), i);
        for (MemorySegment next : given.subList(1, given.size())) {
            value = combine(value, readLong(next, i));
        }
        if (op != ReductionOp.AVERAGE) {
            return value;
        }
        return type == DataType.UINT64 ? Long.divideUnsigned(value, given.size()) : value / given.size();
    }

    private long combine(long a, long b) {
        int order = type == DataType.UINT64 ? Long.compareUnsigned(a, b) : Long.compare(a, b);
        return switch (op) {
            case SUM, AVERAGE -> a + b;
            case PRODUCT -> a * b;
            case MAX -> order >= 0 ? a : b;
            case MIN -> order <= 0 ? a : b;
        };
    }

    private double reduceDoubles(List<MemorySegment> given, long i) {
        double value = readDouble(given.getFirst(), i);
        for (MemorySegment next : given.subList(1, given.size())) {
            double other = readDouble(next, i);
            value = switch (op) {
                case SUM, AVERAGE -> value + other;
                case PRODUCT -> value * other;
                case MAX -> Math.max(value, other);
                case MIN -> Math.min(value, other);
            };
        }
        return op == ReductionOp.AVERAGE ? value / given.size() : value;
    }

    private long readLong(MemorySegment memory, long i) {
        return switch (type) {
            case INT8 -> memory.get(JAVA_BYTE, i);
            case UINT8 -> Byte.toUnsignedLong(memory.get(JAVA_BYTE, i));
            case INT32 -> memory.get(JAVA_INT_UNALIGNED, 4 * i);
            case UINT32 -> Integer.toUnsignedLong(memory.get(JAVA_INT_UNALIGNED, 4 * i));
            default -> memory.get(JAVA_LONG_UNALIGNED, 8 * i);
        };
    }

    private void writeLong(MemorySegment memory, long i, long value) {
        switch (type.byteSize()) {
            case 1 -> memory.set(JAVA_BYTE, i, (byte) value);
            case 4 -> memory.set(JAVA_INT_UNALIGNED, 4 * i, (int) value);
            default -> memory.set(JAVA_LONG_UNALIGNED, 8 * i, value);
        }
    }

    private double readDouble(MemorySegment memory, long i) {
        return switch (type) {
            case FLOAT64 -> memory.get(JAVA_DOUBLE_UNALIGNED, 8 * i);
            case FLOAT32 -> memory.get(JAVA_FLOAT_UNALIGNED, 4 * i);
            case FLOAT16 -> Float.float16ToFloat(memory.get(JAVA_SHORT_UNALIGNED, 2 * i));
            case BFLOAT16 -> SmallFloats.fromBfloat16(memory.get(JAVA_SHORT_UNALIGNED, 2 * i));
            case FLOAT8_E4M3 -> SmallFloats.fromE4m3(memory.get(JAVA_BYTE, i));
            default -> SmallFloats.fromE5m2(memory.get(JAVA_BYTE, i));
        };
    }

    private void writeDouble(MemorySegment memory, long i, double value) {
        switch (type) {
            case FLOAT64 -> memory.set(JAVA_DOUBLE_UNALIGNED, 8 * i, value);
            case FLOAT32 -> memory.set(JAVA_FLOAT_UNALIGNED, 4 * i, (float) value);
            case FLOAT16 -> memory.set(JAVA_SHORT_UNALIGNED, 2 * i, Float.floatToFloat16((float) value));
            case BFLOAT16 -> memory.set(JAVA_SHORT_UNALIGNED, 2 * i, SmallFloats.toBfloat16((float) value));
            case FLOAT8_E4M3 -> memory.set(JAVA_BYTE, i, SmallFloats.toE4m3((float) value));
            default -> memory.set(JAVA_BYTE, i, SmallFloats.toE5m2((float) value));
        }
    }
}
