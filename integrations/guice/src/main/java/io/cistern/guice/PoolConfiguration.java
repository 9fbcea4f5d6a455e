package io.cistern.guice;

import java.util.OptionalLong;

/// Holds the requested configuration of a pool.
///
/// @param name its name in the injector, which is also its tag
/// @param spec the spec of an allocator or of a segment source
/// @param limitBytes the maximum requested bytes of all its live blocks; empty for no limit
public record PoolConfiguration(String name, String spec, OptionalLong limitBytes) {}
