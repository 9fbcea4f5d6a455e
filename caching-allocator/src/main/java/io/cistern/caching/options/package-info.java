/// The options of `caching` for programs: the declaration of each option, with its key, type, legal
/// values and meaning, and a builder of specs in code. The allocator reads the same declarations.
package io.cistern.caching.options;
