package io.cistern.guice;

import java.util.OptionalLong;

/// How a pool was asked for.
///
/// @param name its name, in the injector and as its tag
/// @param spec the spec of an allocator or of a segment source
/// @param limitBytes the most bytes requested from it at once; empty for no limit
public record PoolConfiguration(String name, String spec, OptionalLong limitBytes) {}
