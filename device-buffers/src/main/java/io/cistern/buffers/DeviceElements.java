package io.cistern.buffers;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/// A buffer seen as elements of one type: indices count elements, not bytes.
///
/// ```java
/// DeviceElements weights = buffer.elements(ValueLayout.JAVA_FLOAT);
/// weights.slice(0, 256).copyFrom(MemorySegment.ofArray(floats));
/// launch(weights.address(256), weights.count() - 256);
/// ```
///
/// A view, as [DeviceBuffer#slice]: it ends with its buffer.
///
/// @param buffer what is seen
/// @param layout the type of an element
public record DeviceElements(DeviceBuffer buffer, ValueLayout layout) {
    /// A view of whole elements.
    ///
    /// @throws IllegalArgumentException if the buffer's length is no multiple of the layout's
    public DeviceElements {
        if (buffer.byteSize() % layout.byteSize() != 0) {
            throw new IllegalArgumentException(buffer + " is no multiple of the " + layout.byteSize() + " bytes of "
                    + layout.carrier().getSimpleName());
        }
    }

    /// How many elements there are.
    public long count() {
        return buffer.byteSize() / layout.byteSize();
    }

    /// The address of an element: see [DeviceBuffer#address].
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalStateException if the buffer is closed
    public long address(long index) {
        return buffer.address() + Objects.checkIndex(index, count()) * layout.byteSize();
    }

    /// Some of the elements.
    ///
    /// @throws IndexOutOfBoundsException if they are not all inside
    /// @throws IllegalStateException if the buffer is closed
    public DeviceElements slice(long from, long count) {
        Objects.checkFromIndexSize(from, count, count());
        return new DeviceElements(buffer.slice(from * layout.byteSize(), count * layout.byteSize()), layout);
    }

    /// Copies host memory to the first elements and waits: see [DeviceBuffer#copyFrom(MemorySegment)].
    public void copyFrom(MemorySegment source) {
        buffer.copyFrom(source);
    }

    /// Copies all elements to host memory and waits: see [DeviceBuffer#copyTo(MemorySegment)].
    public void copyTo(MemorySegment target) {
        buffer.copyTo(target);
    }

    /// A copy of the elements, after all that the buffer's stream has been given.
    ///
    /// @throws IllegalArgumentException if the elements are no floats
    /// @throws IllegalStateException if the buffer is closed, or has more elements than an array can
    public float[] toFloats() {
        requireCarrier(float.class);
        float[] array = new float[arrayLength()];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// A copy of the elements, as [#toFloats].
    ///
    /// @throws IllegalArgumentException if the elements are no doubles
    /// @throws IllegalStateException if the buffer is closed, or has more elements than an array can
    public double[] toDoubles() {
        requireCarrier(double.class);
        double[] array = new double[arrayLength()];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// A copy of the elements, as [#toFloats].
    ///
    /// @throws IllegalArgumentException if the elements are no ints
    /// @throws IllegalStateException if the buffer is closed, or has more elements than an array can
    public int[] toInts() {
        requireCarrier(int.class);
        int[] array = new int[arrayLength()];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// A copy of the elements, as [#toFloats].
    ///
    /// @throws IllegalArgumentException if the elements are no longs
    /// @throws IllegalStateException if the buffer is closed, or has more elements than an array can
    public long[] toLongs() {
        requireCarrier(long.class);
        long[] array = new long[arrayLength()];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// A copy of the elements, as [#toFloats].
    ///
    /// @throws IllegalArgumentException if the elements are no bytes
    /// @throws IllegalStateException if the buffer is closed, or has more elements than an array can
    public byte[] toBytes() {
        requireCarrier(byte.class);
        byte[] array = new byte[arrayLength()];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    private void requireCarrier(Class<?> wanted) {
        if (layout.carrier() != wanted) {
            throw new IllegalArgumentException(
                    "elements of " + layout.carrier().getSimpleName() + ", not of " + wanted.getSimpleName());
        }
    }

    private int arrayLength() {
        if (count() > Integer.MAX_VALUE - 8) {
            throw new IllegalStateException(count() + " elements are more than an array can have");
        }
        return (int) count();
    }
}
