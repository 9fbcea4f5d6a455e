package io.cistern.nccl;

import io.cistern.buffers.DeviceBuffer;
import io.cistern.nccl.Collective.Kind;

/// Checks and counts the buffers of one collective, and keeps their memory until the stream has passed the call.
///
/// @param rank the rank that makes the call
record Operands(Communicator rank, Kind kind, DataType type, long stream) {
    /// Returns the elements in one part of a buffer.
    ///
    /// @param parts the number of equal parts that the buffer holds
    long count(DeviceBuffer buffer, int parts) {
        long unit = (long) type.byteSize() * parts;
        if (buffer.device() != rank.device()) {
            throw illegal(buffer, "is on a device other than " + rank);
        }
        if (buffer.byteSize() % unit != 0) {
            throw illegal(buffer, "is not a multiple of " + unit + " bytes: " + parts + " × " + type);
        }
        return buffer.byteSize() / unit;
    }

    /// Returns the elements in one part of two buffers, whose parts must have equal sizes.
    long count(DeviceBuffer one, int partsOfOne, DeviceBuffer other, int partsOfOther) {
        long count = count(one, partsOfOne);
        if (count(other, partsOfOther) != count) {
            throw illegal(
                    other,
                    "does not match " + one + ": the ratio of their sizes must be " + partsOfOther + " to "
                            + partsOfOne);
        }
        return count;
    }

    /// Returns the address of a buffer, which keeps its memory until the stream has passed the call.
    long use(DeviceBuffer buffer) {
        long address = buffer.address();
        if (address % type.byteSize() != 0) {
            throw illegal(buffer, "does not begin at a multiple of " + type.byteSize() + " bytes");
        }
        if (address != 0 && buffer.stream() != stream) {
            buffer.recordUse(stream);
        }
        Group group = Group.current();
        if (group != null) {
            group.add(buffer);
        }
        return address;
    }

    private IllegalArgumentException illegal(DeviceBuffer buffer, String why) {
        return new IllegalArgumentException(kind + " of " + type + ": " + buffer + " " + why);
    }
}
