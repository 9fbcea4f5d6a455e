package io.cistern.pressure;

/// The bytes that a [SpillStore] holds at each place, and the moves that it has made.
///
/// @param deviceBytes bytes of buffers on devices
/// @param hostBytes bytes of buffers in pinned host memory
/// @param fileBytes bytes of buffers in files
/// @param spills how often a buffer left its device
/// @param spilledBytes the bytes of those moves
/// @param writes how often a buffer went to a file, from its device or from the host
/// @param writtenBytes the bytes of those moves
/// @param returns how often a buffer came back to its device
/// @param returnedBytes the bytes of those moves
/// @param failures how often a buffer stayed where it was because the driver or the file system refused
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
