package io.cistern.buffers;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/// Rows of a buffer that lie apart, such as a part of an image or of a matrix: what 2-D copies copy.
///
/// ```
/// offset        offset + pitch      offset + 2 × pitch
/// | rowBytes |  …  | rowBytes |  …  | rowBytes |
/// ```
///
/// A view, as [DeviceBuffer#slice].
///
/// @param buffer where they lie
/// @param offset of the first row in the buffer
/// @param pitch bytes from the beginning of a row to that of the next, at least `rowBytes`
/// @param rowBytes bytes of a row
/// @param rows how many rows
public record DeviceRows(DeviceBuffer buffer, long offset, long pitch, long rowBytes, long rows) {
    /// Rows inside the buffer.
    ///
    /// @throws IndexOutOfBoundsException if they are not inside
    /// @throws IllegalArgumentException if rows overlap
    public DeviceRows {
        Objects.checkFromIndexSize(offset, span(pitch, rowBytes, rows), buffer.byteSize());
    }

    /// Bytes from the beginning of the first row to the end of the last.
    private static long span(long pitch, long rowBytes, long rows) {
        if (rowBytes < 0 || rows < 0 || pitch < rowBytes) {
            throw new IllegalArgumentException(rows + " rows of " + rowBytes + " bytes, " + pitch
                    + " apart: the pitch is at least a row's length");
        }
        return rows == 0 ? 0 : Math.addExact(Math.multiplyExact(pitch, rows - 1), rowBytes);
    }

    /// @param host for people: `source`
    /// @param byteSize what it has
    private void requireSpan(String host, long byteSize, long hostPitch) {
        long span = span(hostPitch, rowBytes, rows);
        if (span > byteSize) {
            throw new IndexOutOfBoundsException(
                    host + " has " + byteSize + " bytes, its " + rows + " rows take " + span);
        }
    }

    /// Copies rows of host memory to these, in the order of a stream. The memory may be changed at once.
    ///
    /// @param source rows that begin at its beginning
    /// @param sourcePitch bytes from the beginning of one of its rows to that of the next
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the source has fewer rows
    /// @throws IllegalArgumentException if its rows overlap
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyFrom(MemorySegment source, long sourcePitch, long stream, CopyMode mode) {
        requireSpan("source", source.byteSize(), sourcePitch);
        HostRows.toDevice(this, source, sourcePitch, stream, mode);
    }

    /// Copies rows of pinned memory to these, as the other; the pinned buffer may be closed at once.
    ///
    /// @throws IndexOutOfBoundsException if the source has fewer rows
    /// @throws IllegalArgumentException if its rows overlap
    /// @throws IllegalStateException if one of the buffers is closed
    public void copyFrom(PinnedBuffer source, long sourcePitch, long stream, CopyMode mode) {
        requireSpan("source", source.byteSize(), sourcePitch);
        HostRows.toDevice(this, source, sourcePitch, stream, mode);
    }

    /// Copies these to rows of host memory, in the order of a stream, and waits until they are there.
    ///
    /// @param target rows that begin at its beginning; what lies between them stays
    /// @param targetPitch bytes from the beginning of one of its rows to that of the next
    /// @param stream a stream of the buffer's device
    /// @throws IndexOutOfBoundsException if the target has room for fewer rows
    /// @throws IllegalArgumentException if its rows overlap, or it is read-only
    /// @throws IllegalStateException if the buffer is closed, or the memory's arena
    public void copyTo(MemorySegment target, long targetPitch, long stream) {
        requireSpan("target", target.byteSize(), targetPitch);
        HostRows.toHost(this, target, targetPitch, stream);
    }

    /// Copies these to rows of pinned memory, in the order of a stream.
    ///
    /// @throws IndexOutOfBoundsException if the target has room for fewer rows
    /// @throws IllegalArgumentException if its rows overlap
    /// @throws IllegalStateException if one of the buffers is closed
    public void copyTo(PinnedBuffer target, long targetPitch, long stream, CopyMode mode) {
        requireSpan("target", target.byteSize(), targetPitch);
        HostRows.toHost(this, target, targetPitch, stream, mode);
    }

    /// Copies rows of the same shape on the same device to these, in the order of a stream.
    ///
    /// @param stream a stream of the device
    /// @throws IllegalArgumentException if the shapes or devices differ, or the rows lie in one block and overlap
    /// @throws IllegalStateException if one of the buffers is closed
    public void copyFrom(DeviceRows source, long stream) {
        if (source.rowBytes != rowBytes || source.rows != rows || source.buffer.device() != buffer.device()) {
            throw new IllegalArgumentException(source + " is not of the shape and device of " + this);
        }
        DeviceCopies.rows(this, source, stream);
    }

    /// Bytes from the beginning of the first row to the end of the last.
    long span() {
        return span(pitch, rowBytes, rows);
    }

    /// The address of the first row, for work on a stream.
    long addressOn(long stream) {
        return buffer.addressOn(stream) + offset;
    }
}
