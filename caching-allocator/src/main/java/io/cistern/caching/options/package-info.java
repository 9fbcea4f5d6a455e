/// The options of `caching` for programs: each key once, with its type, its legal values and its meaning, and a
/// spec written in code with them. The allocator below reads the same declarations; nothing here knows how it
/// works.
package io.cistern.caching.options;
