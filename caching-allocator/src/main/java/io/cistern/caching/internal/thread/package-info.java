/// What each thread keeps to itself, so that a pair of allocation and free takes neither a lock nor an atomic
/// instruction.
///
/// [ThreadCache] is the fast path; its blocks stand in [ThreadCacheBins], one for each of its
/// [ThreadCacheStreams]. [ThreadCacheRefill] moves blocks to the shards and from them, many at a time.
/// [ThreadCaches] are those of a device, and empties them.
package io.cistern.caching.internal.thread;
