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

    /// Sets every element, on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are no ints
    /// @throws IllegalStateException if the buffer is closed
    public void fill(int value) {
        requireCarrier(int.class);
        buffer.fillWords(value);
    }

    /// Sets every element, on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are no floats
    /// @throws IllegalStateException if the buffer is closed
    public void fill(float value) {
        requireCarrier(float.class);
        buffer.fillWords(Float.floatToRawIntBits(value));
    }

    /// Sets every element: the first one by a copy that is waited for, the others by copies on the buffer's stream,
    /// each twice as long as the one before.
    ///
    /// @throws IllegalArgumentException if the elements are no longs
    /// @throws IllegalStateException if the buffer is closed
    public void fill(long value) {
        if (count() > 0) {
            set(0, value);
            repeatFirst();
        }
    }

    /// Sets every element, as [#fill(long)] does.
    ///
    /// @throws IllegalArgumentException if the elements are no doubles
    /// @throws IllegalStateException if the buffer is closed
    public void fill(double value) {
        if (count() > 0) {
            set(0, value);
            repeatFirst();
        }
    }

    private void repeatFirst() {
        for (long set = 1; set < count(); ) {
            long more = Math.min(set, count() - set);
            slice(set, more).buffer.copyFrom(slice(0, more).buffer, buffer.stream());
            set += more;
        }
    }

    /// Copies an element to the host, and waits for all that the buffer's stream has been given. For many elements
    /// take [#toFloats] of a [slice][#slice].
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalArgumentException if the elements are no floats
    /// @throws IllegalStateException if the buffer is closed
    public float getFloat(long index) {
        return slice(index, 1).toFloats()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are no doubles
    public double getDouble(long index) {
        return slice(index, 1).toDoubles()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are no ints
    public int getInt(long index) {
        return slice(index, 1).toInts()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are no longs
    public long getLong(long index) {
        return slice(index, 1).toLongs()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are no bytes
    public byte getByte(long index) {
        return slice(index, 1).toBytes()[0];
    }

    /// Sets an element on the buffer's stream, and waits until it is there.
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalArgumentException if the elements are no floats
    /// @throws IllegalStateException if the buffer is closed
    public void set(long index, float value) {
        requireCarrier(float.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new float[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are no doubles
    public void set(long index, double value) {
        requireCarrier(double.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new double[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are no ints
    public void set(long index, int value) {
        requireCarrier(int.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new int[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are no longs
    public void set(long index, long value) {
        requireCarrier(long.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new long[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are no bytes
    public void set(long index, byte value) {
        requireCarrier(byte.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new byte[] {value}));
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
