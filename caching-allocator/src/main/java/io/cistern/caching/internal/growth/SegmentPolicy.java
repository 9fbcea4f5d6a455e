package io.cistern.caching.internal.growth;

/// How memory grows by plain segments.
///
/// @param alignment the unit of all addresses
/// @param blockUnit the unit of all block sizes
/// @param splits whether blocks share a segment
public record SegmentPolicy(long alignment, long blockUnit, boolean splits) {}
