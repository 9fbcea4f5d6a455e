package io.cistern.suites.handles;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.handles.cublas.ElementType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;

/// Converts elements of a type to doubles and back.
final class Elements {
    private static final int BFLOAT16_SHIFT = 16;
    private static final int EIGHTHS = 16;

    private Elements() {}

    /// Returns random eighths from -2 to 2, which every type holds exactly.
    static double[] random(Random random, long count) {
        return random.ints(count, -EIGHTHS, EIGHTHS + 1)
                .mapToDouble(eighths -> eighths / 8.0)
                .toArray();
    }

    static MemorySegment toBytes(ElementType type, double... values) {
        MemorySegment bytes = MemorySegment.ofArray(new long[values.length]);
        for (int i = 0; i < values.length; i++) {
            switch (type) {
                case FLOAT32 -> bytes.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) values[i]);
                case FLOAT64 -> bytes.setAtIndex(ValueLayout.JAVA_DOUBLE, i, values[i]);
                case FLOAT16 -> bytes.setAtIndex(ValueLayout.JAVA_SHORT, i, Float.floatToFloat16((float) values[i]));
                case BFLOAT16 ->
                    bytes.setAtIndex(ValueLayout.JAVA_SHORT, i, (short)
                            (Float.floatToRawIntBits((float) values[i]) >>> BFLOAT16_SHIFT));
            }
        }
        return bytes.asSlice(0, (long) values.length * type.byteSize());
    }

    static double[] read(ElementType type, DeviceBuffer buffer, int count) {
        MemorySegment bytes = MemorySegment.ofArray(new long[count]);
        buffer.slice(0, (long) count * type.byteSize()).copyTo(bytes);
        double[] values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = switch (type) {
                case FLOAT32 -> bytes.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                case FLOAT64 -> bytes.getAtIndex(ValueLayout.JAVA_DOUBLE, i);
                case FLOAT16 -> Float.float16ToFloat(bytes.getAtIndex(ValueLayout.JAVA_SHORT, i));
                case BFLOAT16 -> Float.intBitsToFloat(bytes.getAtIndex(ValueLayout.JAVA_SHORT, i) << BFLOAT16_SHIFT);
            };
        }
        return values;
    }

    /// Returns the largest difference of a stored result from the true one, for results of about 1.
    static double tolerance(ElementType type) {
        return switch (type) {
            case FLOAT32 -> 1e-5;
            case FLOAT64 -> 1e-13;
            case FLOAT16 -> 1e-3;
            case BFLOAT16 -> 8e-3;
        };
    }
}
