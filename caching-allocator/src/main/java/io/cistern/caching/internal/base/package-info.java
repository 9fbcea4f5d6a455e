/// What all boxes of the caching allocator share: sizes and their rounding, counters and gauges, a lock that is
/// held for less time than a thread takes to fall asleep. Knows nothing of blocks, pages or streams.
package io.cistern.caching.internal.base;
