/// The options of `caching` for programs: each key once, with its type, legal values and meaning, and a builder
/// of specs in code. The allocator reads the same declarations; this package does not depend on how the
/// allocator works.
package io.cistern.caching.options;
