/// Sizes and their rounding, counters and gauges, and a lock for short critical sections, shared by all other
/// packages of the caching allocator. Does not depend on blocks, pages or streams.
package io.cistern.caching.internal.base;
