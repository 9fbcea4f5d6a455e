package io.cistern.diagnostics;

import java.io.Serializable;

/// The memory that an allocator holds for one stream.
///
/// @param stream the handle of the stream; a negative number for the per-thread default stream of a thread
/// @param liveBytes bytes of blocks that are in use or in thread caches
/// @param largestFreeBytes bytes of the largest block that is free for the stream
public record StreamMemory(long stream, long liveBytes, long largestFreeBytes) implements Serializable {}
