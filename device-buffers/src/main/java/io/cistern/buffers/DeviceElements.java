package io.cistern.buffers;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;

/// Shows a buffer as elements of one type: indices count elements, not bytes.
///
/// ```java
/// DeviceElements weights = buffer.elements(ValueLayout.JAVA_FLOAT);
/// weights.slice(0, 256).copyFrom(MemorySegment.ofArray(floats));
/// launch(weights.address(256), weights.count() - 256);
/// ```
///
/// An element may also be a vector or a structure, such as four floats
/// (`MemoryLayout.sequenceLayout(4, ValueLayout.JAVA_FLOAT)`). Such elements can be counted, addressed,
/// sliced and copied, but typed methods such as [#getFloat], [#fill(float)] and [#toFloats] reject them.
///
/// Like a [slice][DeviceBuffer#slice], this is a view: it becomes unusable when the buffer is closed.
///
/// @param buffer the buffer
/// @param layout the type of an element
public record DeviceElements(DeviceBuffer buffer, MemoryLayout layout) {
    /// Creates a view of whole elements.
    ///
    /// @throws IllegalArgumentException if the layout has 0 bytes, or the buffer's length is not a multiple
    ///     of the layout's
    public DeviceElements {
        if (layout.byteSize() == 0) {
            throw new IllegalArgumentException("elements of 0 bytes: " + layout);
        }
        if (buffer.byteSize() % layout.byteSize() != 0) {
            throw new IllegalArgumentException(
                    buffer + " is not a multiple of the " + layout.byteSize() + " bytes of " + name(layout));
        }
    }

    private static String name(MemoryLayout layout) {
        return layout instanceof ValueLayout value ? value.carrier().getSimpleName() : layout.toString();
    }

    /// Returns the number of elements.
    public long count() {
        return buffer.byteSize() / layout.byteSize();
    }

    /// Returns the address of an element: see [DeviceBuffer#address].
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalStateException if the buffer is closed
    public long address(long index) {
        return buffer.address() + Objects.checkIndex(index, count()) * layout.byteSize();
    }

    /// Returns a view of some of the elements.
    ///
    /// @param from index of the first element, from 0
    /// @param count number of elements
    /// @throws IndexOutOfBoundsException if not all of them are inside the buffer
    /// @throws IllegalStateException if the buffer is closed, unless `count` is 0
    public DeviceElements slice(long from, long count) {
        Objects.checkFromIndexSize(from, count, count());
        return new DeviceElements(buffer.slice(from * layout.byteSize(), count * layout.byteSize()), layout);
    }

    /// Copies host memory to the first elements and waits for the copy: see
    /// [DeviceBuffer#copyFrom(MemorySegment)].
    public void copyFrom(MemorySegment source) {
        buffer.copyFrom(source);
    }

    /// Copies all elements to host memory and waits for the copy: see [DeviceBuffer#copyTo(MemorySegment)].
    public void copyTo(MemorySegment target) {
        buffer.copyTo(target);
    }

    /// Sets every element, on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are not shorts
    /// @throws IllegalStateException if the buffer is closed
    public void fill(short value) {
        requireCarrier(short.class);
        buffer.fillShorts(value);
    }

    /// Sets every element, on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are not ints
    /// @throws IllegalStateException if the buffer is closed
    public void fill(int value) {
        requireCarrier(int.class);
        buffer.fillWords(value);
    }

    /// Sets every element, on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are not floats
    /// @throws IllegalStateException if the buffer is closed
    public void fill(float value) {
        requireCarrier(float.class);
        buffer.fillWords(Float.floatToRawIntBits(value));
    }

    /// Sets every element. Copies the value to the first element and waits for that copy; then enqueues
    /// copies on the buffer's stream that double the part already set, until all elements are set.
    ///
    /// @throws IllegalArgumentException if the elements are not longs, unless there are none
    /// @throws IllegalStateException if the buffer is closed, or its stream is being captured
    public void fill(long value) {
        if (count() > 0) {
            set(0, value);
            repeatFirst();
        }
    }

    /// Sets every element, as [#fill(long)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not doubles, unless there are none
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

    /// Copies an element to the host, and waits for all work enqueued so far on the buffer's stream. For many
    /// elements call [#toFloats] of a [slice][#slice].
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalArgumentException if the elements are not floats
    /// @throws IllegalStateException if the buffer is closed, or its stream is being captured
    public float getFloat(long index) {
        return slice(index, 1).toFloats()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are not doubles
    public double getDouble(long index) {
        return slice(index, 1).toDoubles()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are not ints
    public int getInt(long index) {
        return slice(index, 1).toInts()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are not longs
    public long getLong(long index) {
        return slice(index, 1).toLongs()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are not shorts
    public short getShort(long index) {
        return slice(index, 1).toShorts()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    ///
    /// @throws IllegalArgumentException if the elements are not bytes
    public byte getByte(long index) {
        return slice(index, 1).toBytes()[0];
    }

    /// Sets an element on the buffer's stream, and waits for the copy.
    ///
    /// @throws IndexOutOfBoundsException if there is no such element
    /// @throws IllegalArgumentException if the elements are not floats
    /// @throws IllegalStateException if the buffer is closed, or its stream is being captured
    public void set(long index, float value) {
        requireCarrier(float.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new float[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not doubles
    public void set(long index, double value) {
        requireCarrier(double.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new double[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not ints
    public void set(long index, int value) {
        requireCarrier(int.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new int[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not longs
    public void set(long index, long value) {
        requireCarrier(long.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new long[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not shorts
    public void set(long index, short value) {
        requireCarrier(short.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new short[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    ///
    /// @throws IllegalArgumentException if the elements are not bytes
    public void set(long index, byte value) {
        requireCarrier(byte.class);
        slice(index, 1).copyFrom(MemorySegment.ofArray(new byte[] {value}));
    }

    /// Returns a copy of the elements. Waits for all work enqueued so far on the buffer's stream.
    ///
    /// @throws IllegalArgumentException if the elements are not floats
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public float[] toFloats() {
        float[] array = new float[arrayLength(float.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    ///
    /// @throws IllegalArgumentException if the elements are not doubles
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public double[] toDoubles() {
        double[] array = new double[arrayLength(double.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    ///
    /// @throws IllegalArgumentException if the elements are not ints
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public int[] toInts() {
        int[] array = new int[arrayLength(int.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    ///
    /// @throws IllegalArgumentException if the elements are not longs
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public long[] toLongs() {
        long[] array = new long[arrayLength(long.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// Returns a copy of the elements, as [#toFloats] does. For half-precision numbers see
    /// [Float#float16ToFloat].
    ///
    /// @throws IllegalArgumentException if the elements are not shorts
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public short[] toShorts() {
        short[] array = new short[arrayLength(short.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    ///
    /// @throws IllegalArgumentException if the elements are not bytes
    /// @throws IllegalStateException if the buffer is closed, if its stream is being captured, or if there
    ///     are more elements than an array can hold
    public byte[] toBytes() {
        byte[] array = new byte[arrayLength(byte.class)];
        buffer.copyTo(MemorySegment.ofArray(array));
        return array;
    }

    private void requireCarrier(Class<?> wanted) {
        if (!(layout instanceof ValueLayout value) || value.carrier() != wanted) {
            throw new IllegalArgumentException(
                    "the elements are of type " + name(layout) + ", not " + wanted.getSimpleName());
        }
    }

    private int arrayLength(Class<?> carrier) {
        requireCarrier(carrier);
        if (count() > Integer.MAX_VALUE - 8) {
            throw new IllegalStateException(count() + " elements are more than an array can hold");
        }
        return (int) count();
    }
}
