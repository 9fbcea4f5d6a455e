package io.cistern.buffers;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import java.util.function.Function;

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
/// **Errors.** Typed methods throw an [IllegalArgumentException] if the elements have another type. All
/// methods that access elements throw an [IllegalStateException] if the buffer is closed, and an
/// [IndexOutOfBoundsException] if there is no such element. Methods that wait for the buffer's stream throw
/// an [IllegalStateException] while that stream is being captured.
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
    public void fill(short value) {
        requireCarrier(short.class);
        buffer.fillShorts(value);
    }

    /// Sets every element, on the buffer's stream.
    public void fill(int value) {
        requireCarrier(int.class);
        buffer.fillWords(value);
    }

    /// Sets every element, on the buffer's stream.
    public void fill(float value) {
        requireCarrier(float.class);
        buffer.fillWords(Float.floatToRawIntBits(value));
    }

    /// Sets every element. Copies the value to the first element and waits for that copy; then enqueues
    /// copies on the buffer's stream that double the part already set, until all elements are set. Without
    /// elements, it does nothing, whatever their type.
    public void fill(long value) {
        if (count() > 0) {
            set(0, value);
            repeatFirst();
        }
    }

    /// Sets every element, as [#fill(long)] does.
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
    public float getFloat(long index) {
        return slice(index, 1).toFloats()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    public double getDouble(long index) {
        return slice(index, 1).toDoubles()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    public int getInt(long index) {
        return slice(index, 1).toInts()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    public long getLong(long index) {
        return slice(index, 1).toLongs()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    public short getShort(long index) {
        return slice(index, 1).toShorts()[0];
    }

    /// Copies an element to the host, as [#getFloat] does.
    public byte getByte(long index) {
        return slice(index, 1).toBytes()[0];
    }

    /// Sets an element on the buffer's stream, and waits for the copy.
    public void set(long index, float value) {
        set(index, float.class, MemorySegment.ofArray(new float[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    public void set(long index, double value) {
        set(index, double.class, MemorySegment.ofArray(new double[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    public void set(long index, int value) {
        set(index, int.class, MemorySegment.ofArray(new int[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    public void set(long index, long value) {
        set(index, long.class, MemorySegment.ofArray(new long[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    public void set(long index, short value) {
        set(index, short.class, MemorySegment.ofArray(new short[] {value}));
    }

    /// Sets an element, as [#set(long, float)] does.
    public void set(long index, byte value) {
        set(index, byte.class, MemorySegment.ofArray(new byte[] {value}));
    }

    private void set(long index, Class<?> carrier, MemorySegment value) {
        requireCarrier(carrier);
        slice(index, 1).copyFrom(value);
    }

    /// Returns a copy of the elements. Waits for all work enqueued so far on the buffer's stream.
    ///
    /// @throws IllegalStateException also if there are more elements than an array can hold
    public float[] toFloats() {
        return copied(new float[arrayLength(float.class)], MemorySegment::ofArray);
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    public double[] toDoubles() {
        return copied(new double[arrayLength(double.class)], MemorySegment::ofArray);
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    public int[] toInts() {
        return copied(new int[arrayLength(int.class)], MemorySegment::ofArray);
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    public long[] toLongs() {
        return copied(new long[arrayLength(long.class)], MemorySegment::ofArray);
    }

    /// Returns a copy of the elements, as [#toFloats] does. For half-precision numbers see
    /// [Float#float16ToFloat].
    public short[] toShorts() {
        return copied(new short[arrayLength(short.class)], MemorySegment::ofArray);
    }

    /// Returns a copy of the elements, as [#toFloats] does.
    public byte[] toBytes() {
        return copied(new byte[arrayLength(byte.class)], MemorySegment::ofArray);
    }

    private <T> T copied(T array, Function<T, MemorySegment> segment) {
        buffer.copyTo(segment.apply(array));
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
