package io.cistern.diagnostics;

/// A block that the program has freed, but that a graph keeps because its launches may use it.
///
/// @param address where it begins
/// @param byteSize bytes asked for
/// @param device the device it lives on
/// @param allocator the spec of the allocator, or the name of the pool, that allocated it
/// @param graph the [io.cistern.graph.GraphMemory] that keeps it, as its `toString` names it
public record KeptBlock(long address, long byteSize, int device, String allocator, String graph) {}
