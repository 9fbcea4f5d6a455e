package io.cistern.buffers;

import io.cistern.cuda.Copies;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Rows of a buffer at a fixed pitch, such as a part of an image or a matrix, for 2-D copies.
///
/// ```
/// offset        offset + pitch      offset + 2 × pitch
/// | rowBytes |  …  | rowBytes |  …  | rowBytes |
/// ```
///
/// Like a [slice][DeviceBuffer#slice], this is a view: it becomes unusable when the buffer is closed.
///
/// @param buffer the buffer that holds the rows
/// @param offset byte in the buffer at which the first row begins
/// @param pitch bytes from the beginning of a row to the beginning of the next, at least `rowBytes`
/// @param rowBytes bytes of a row
/// @param rows number of rows
public record DeviceRows(DeviceBuffer buffer, long offset, long pitch, long rowBytes, long rows) {
    /// Creates a view of rows inside the buffer.
    ///
    /// @throws IndexOutOfBoundsException if the rows are not inside the buffer
    /// @throws IllegalArgumentException if rows overlap, or `rowBytes` or `rows` is negative
    public DeviceRows {
        Objects.checkFromIndexSize(offset, span(pitch, rowBytes, rows), buffer.byteSize());
    }

    /// Returns the bytes from the beginning of the first row to the end of the last.
    private static long span(long pitch, long rowBytes, long rows) {
        if (rowBytes < 0 || rows < 0 || pitch < rowBytes) {
            throw new IllegalArgumentException(rows + " rows of " + rowBytes + " bytes, " + pitch
                    + " apart: the pitch must be at least a row's length");
        }
        if (rows == 0) {
            return 0;
        }
        boolean fits = pitch == 0 || rows - 1 <= (Long.MAX_VALUE - rowBytes) / pitch;
        return fits ? pitch * (rows - 1) + rowBytes : Long.MAX_VALUE; // which no buffer has
    }

    /// @param host the memory's name in the message: `source`
    /// @param byteSize bytes of that memory
    private void requireSpan(String host, long byteSize, long hostPitch) {
        long span = span(hostPitch, rowBytes, rows);
        if (span > byteSize) {
            throw new IndexOutOfBoundsException(
                    host + " has " + byteSize + " bytes, but its " + rows + " rows take " + span);
        }
    }

    /// Copies rows of host memory to these rows, in stream order. The memory may be changed as soon as
    /// this method returns.
    ///
    /// @param source memory that begins with the first row to copy
    /// @param sourcePitch bytes from the beginning of a row of `source` to the beginning of the next
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the source is too short for the rows
    /// @throws IllegalArgumentException if `sourcePitch` is less than [#rowBytes]
    /// @throws IllegalStateException if the buffer, or the arena of `source`, is closed; or if the stream
    ///     is being captured
    /// @throws WrongThreadException if `source` is in another thread's confined arena
    public void copyFrom(MemorySegment source, long sourcePitch, long stream, CopyMode mode) {
        requireSpan("source", source.byteSize(), sourcePitch);
        HostRows.toDevice(this, source, sourcePitch, stream, mode);
    }

    /// Copies rows of pinned memory to these rows, in stream order. The pinned buffer may be closed
    /// right after this call.
    ///
    /// @throws IndexOutOfBoundsException if the source is too short for the rows
    /// @throws IllegalArgumentException if `sourcePitch` is less than [#rowBytes]
    /// @throws IllegalStateException if either buffer is closed; or if the copy is blocking and the stream
    ///     is being captured
    public void copyFrom(PinnedBuffer source, long sourcePitch, long stream, CopyMode mode) {
        requireSpan("source", source.byteSize(), sourcePitch);
        HostRows.toDevice(this, source, sourcePitch, stream, mode);
    }

    /// Copies these rows to rows of host memory, in stream order, and waits for the copy.
    ///
    /// @param target memory that begins with its first row; the bytes between rows do not change
    /// @param targetPitch bytes from the beginning of a row of `target` to the beginning of the next
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the target is too short for the rows
    /// @throws IllegalArgumentException if `targetPitch` is less than [#rowBytes], or the target is
    ///     read-only
    /// @throws IllegalStateException if the buffer, or the arena of `target`, is closed; or if the stream
    ///     is being captured
    /// @throws WrongThreadException if `target` is in another thread's confined arena
    public void copyTo(MemorySegment target, long targetPitch, long stream) {
        requireSpan("target", target.byteSize(), targetPitch);
        HostRows.toHost(this, target, targetPitch, stream);
    }

    /// Copies these rows to rows of pinned memory, in stream order.
    ///
    /// @throws IndexOutOfBoundsException if the target is too short for the rows
    /// @throws IllegalArgumentException if `targetPitch` is less than [#rowBytes]
    /// @throws IllegalStateException if either buffer is closed; or if the copy is blocking and the stream
    ///     is being captured
    public void copyTo(PinnedBuffer target, long targetPitch, long stream, CopyMode mode) {
        requireSpan("target", target.byteSize(), targetPitch);
        HostRows.toHost(this, target, targetPitch, stream, mode);
    }

    /// Copies rows of the same shape on the same device to these rows, in stream order.
    ///
    /// @param stream a stream of the device
    /// @throws IllegalArgumentException if the shapes or devices differ, or if rows of the source and of
    ///     the target overlap. If the pitches differ, the bytes between rows count as parts of the rows
    /// @throws IllegalStateException if either buffer is closed
    public void copyFrom(DeviceRows source, long stream) {
        if (source.rowBytes != rowBytes || source.rows != rows || source.buffer.device() != buffer.device()) {
            throw new IllegalArgumentException(source + " differs in shape or device from " + this);
        }
        DeviceCopies.rows(this, source, stream);
    }

    /// Returns the bytes from the beginning of the first row to the end of the last.
    long span() {
        return span(pitch, rowBytes, rows);
    }

    /// Enqueues a copy of rows of this shape on this device.
    void copyShape(long to, long toPitch, long from, long fromPitch, long stream) {
        Copies copies = buffer.memory().driver().copies();
        copies.rows(buffer.device(), to, toPitch, from, fromPitch, rowBytes, rows, stream);
    }

    /// Returns the address of the first row, for work on a stream.
    long addressOn(long stream) {
        return buffer.addressOn(stream) + offset;
    }
}
