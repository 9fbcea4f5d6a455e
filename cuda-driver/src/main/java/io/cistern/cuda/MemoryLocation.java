package io.cistern.cuda;

/// A place where memory lives (`CUmemLocation`).
///
/// @param type the kind of place
/// @param id the device's ordinal or the NUMA node's number; 0 if the kind needs none
public record MemoryLocation(Type type, int id) {
    /// Kinds of place, with the numbers of `CUmemLocationType`.
    public enum Type {
        /// A device's own memory.
        DEVICE(1),
        /// Host memory.
        HOST(2),
        /// Host memory of one NUMA node.
        HOST_NUMA(3),
        /// Host memory of the calling thread's NUMA node.
        HOST_NUMA_CURRENT(4);

        private final int code;

        Type(int code) {
            this.code = code;
        }

        /// Returns the number in `CUmemLocationType`.
        public int code() {
            return code;
        }
    }

    /// Returns a hash code of the type and the id. It is written by hand, like [#equals], because a record's
    /// generated method loads classes on its first call, which would be during the first allocation.
    @Override
    public int hashCode() {
        return 31 * type.code + id;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof MemoryLocation location && type == location.type && id == location.id;
    }

    /// Returns a device's own memory.
    public static MemoryLocation device(int device) {
        return new MemoryLocation(Type.DEVICE, device);
    }

    /// Returns host memory of any NUMA node.
    public static MemoryLocation host() {
        return new MemoryLocation(Type.HOST, 0);
    }

    /// Returns the memory of one host NUMA node.
    public static MemoryLocation hostNuma(int node) {
        return new MemoryLocation(Type.HOST_NUMA, node);
    }
}
