package io.cistern.pressure;

/// What a [SpillStore] holds where, and what it has moved.
///
/// @param deviceBytes bytes of buffers that are on devices
/// @param hostBytes bytes of buffers that are in pinned host memory
/// @param fileBytes bytes of buffers that are in files
/// @param spills how often a buffer left its device
/// @param spilledBytes bytes of those
/// @param writes how often a buffer went to a file, from its device or from the host
/// @param writtenBytes bytes of those
/// @param returns how often a buffer came back to its device
/// @param returnedBytes bytes of those
/// @param failures how often a buffer stayed where it was, because the driver or the file system refused
public record SpillStatistics(
        long deviceBytes,
        long hostBytes,
        long fileBytes,
        long spills,
        long spilledBytes,
        long writes,
        long writtenBytes,
        long returns,
        long returnedBytes,
        long failures) {}
