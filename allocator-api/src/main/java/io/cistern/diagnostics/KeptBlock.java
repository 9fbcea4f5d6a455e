package io.cistern.diagnostics;

/// A block that the program has freed, but that a graph keeps because the graph's launches may use it.
///
/// @param address the address of the block
/// @param byteSize the requested bytes
/// @param device the device of the block
/// @param allocator the spec of the allocator, or the name of the pool, that allocated the block
/// @param graph the `toString` of the [io.cistern.graph.GraphMemory] that keeps the block
public record KeptBlock(long address, long byteSize, int device, String allocator, String graph) {}
