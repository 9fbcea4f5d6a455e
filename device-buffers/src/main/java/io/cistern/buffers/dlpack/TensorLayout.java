package io.cistern.buffers.dlpack;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/// The type, shape and strides of a tensor.
///
/// @param type the type of each element
/// @param shape elements along each dimension; empty for a single element
/// @param strides distance between neighbours along each dimension, in elements; 0 repeats the same element
public record TensorLayout(TensorType type, List<Long> shape, List<Long> strides) {
    /// Creates a layout with copies of the lists.
    ///
    /// @throws IllegalArgumentException if the lists' lengths differ, if a number in them is negative, or
    ///     if the size in bytes does not fit in a `long`
    public TensorLayout {
        shape = List.copyOf(shape);
        strides = List.copyOf(strides);
        if (shape.size() != strides.size()) {
            throw new IllegalArgumentException("shape " + shape + " and strides " + strides + " differ in length");
        }
        requireNone("shape", shape);
        requireNone("strides", strides);
        byteSize(type, shape, strides);
    }

    /// Returns the layout of a compact tensor in row-major order, like arrays in C.
    ///
    /// @throws IllegalArgumentException if a number is negative, or the size in bytes does not fit in a
    ///     `long`
    public static TensorLayout compact(TensorType type, long... shape) {
        List<Long> strides = new ArrayList<>();
        long stride = 1;
        for (int i = shape.length - 1; i >= 0; i--) {
            strides.add(stride);
            stride = multiply(stride, Math.max(1, shape[i]));
        }
        Collections.reverse(strides);
        return new TensorLayout(type, boxed(shape), strides);
    }

    /// Returns a layout with strides, such as that of a transposed tensor or of a part of one.
    ///
    /// @throws IllegalArgumentException as the constructor does
    public static TensorLayout strided(TensorType type, long[] shape, long[] strides) {
        return new TensorLayout(type, boxed(shape), boxed(strides));
    }

    private static List<Long> boxed(long[] values) {
        return java.util.Arrays.stream(values).boxed().toList();
    }

    private static void requireNone(String name, List<Long> values) {
        if (values.stream().anyMatch(value -> value < 0)) {
            throw new IllegalArgumentException(
                    name + " " + values + " has a negative number: copy such a tensor first");
        }
    }

    /// Returns the bytes from the first element to the end of the last.
    public long byteSize() {
        return byteSize(type, shape, strides);
    }

    private static long byteSize(TensorType type, List<Long> shape, List<Long> strides) {
        if (shape.contains(0L)) {
            return 0;
        }
        long elements = 1;
        for (int i = 0; i < shape.size(); i++) {
            elements = add(elements, multiply(shape.get(i) - 1, strides.get(i)));
        }
        return multiply(elements, type.byteSize());
    }

    private static long multiply(long a, long b) {
        try {
            return Math.multiplyExact(a, b);
        } catch (ArithmeticException overflow) {
            throw tooLarge(overflow);
        }
    }

    private static long add(long a, long b) {
        try {
            return Math.addExact(a, b);
        } catch (ArithmeticException overflow) {
            throw tooLarge(overflow);
        }
    }

    private static IllegalArgumentException tooLarge(ArithmeticException overflow) {
        return new IllegalArgumentException("this tensor has more bytes than any address space", overflow);
    }
}
