package io.cistern.simulated.internal.space;

import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.stream.StreamQueue;
import org.jspecify.annotations.Nullable;

/// A live piece of memory that the driver handed out: by `cuMemAlloc`, from a pool, or pinned on the host.
///
/// @param kind the call family that made it
/// @param address its first byte
/// @param byteSize the bytes that were asked for
/// @param device the device it lives on; for host memory, the device whose context made it
/// @param bufferId a number that no other allocation has
/// @param pool the pool it came from, if any
/// @param stream the stream it was allocated on, if in stream order
/// @param sequence the last work of that stream before it
/// @param uses its last use by each stream
public record Allocation(
        Mapping.Kind kind,
        long address,
        long byteSize,
        int device,
        long bufferId,
        @Nullable PoolSimulation pool,
        @Nullable StreamQueue stream,
        long sequence,
        UseMarks uses) {
    /// Returns whether its pages move between the host and devices.
    public boolean isManaged() {
        return kind == Mapping.Kind.MANAGED
                || (pool != null && pool.properties().managed());
    }

    public long end() {
        return address + byteSize;
    }
}
