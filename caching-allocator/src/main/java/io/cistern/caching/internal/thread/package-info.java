/// Blocks that each thread keeps to itself, so that a pair of allocation and free takes neither a lock nor
/// an atomic instruction.
///
/// [ThreadCache] is the fast path. Its [ThreadCacheBins], one for each stream, keep the blocks. [ThreadCacheRefill]
/// moves blocks to the shards and back, many at a time. [ThreadCaches] has
/// the thread caches of a device and empties them.
package io.cistern.caching.internal.thread;
