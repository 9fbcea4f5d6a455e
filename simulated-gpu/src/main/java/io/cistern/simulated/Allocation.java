package io.cistern.simulated;

import org.jspecify.annotations.Nullable;

/// A live piece of memory that the driver handed out: by `cuMemAlloc`, from a pool, or pinned on the host.
///
/// @param kind what made it
/// @param address its first byte
/// @param byteSize the bytes that were asked for
/// @param device where it lives; for host memory, whose context made it
/// @param bufferId a number no other allocation has
/// @param pool the pool it came from
/// @param stream the stream it was allocated on, if it was in stream order
/// @param sequence the last work of that stream before it
/// @param uses last uses by each stream
record Allocation(
        Mapping.Kind kind,
        long address,
        long byteSize,
        int device,
        long bufferId,
        @Nullable PoolSimulation pool,
        @Nullable StreamQueue stream,
        long sequence,
        UseMarks uses) {
    /// Whether its pages move between the host and devices.
    boolean isManaged() {
        return kind == Mapping.Kind.MANAGED
                || (pool != null && pool.properties().managed());
    }

    long end() {
        return address + byteSize;
    }
}
