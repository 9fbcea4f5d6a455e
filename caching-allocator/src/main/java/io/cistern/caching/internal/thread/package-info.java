/// What each thread keeps to itself, so that a pair of allocation and free takes neither a lock nor an atomic
/// instruction. [ThreadCache] holds the blocks, [ThreadCacheRefill] moves them to the shards and from them, many at
/// a time.
package io.cistern.caching.internal.thread;
