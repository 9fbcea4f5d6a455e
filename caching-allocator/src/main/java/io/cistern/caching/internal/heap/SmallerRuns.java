package io.cistern.caching.internal.heap;

/// Looks for a free run that is smaller than the one of the best free block, and can serve the request too: with
/// free blocks that do not begin it, or with pages that come back to their aliased blocks. A request is placed as if
/// these pages were there. So a program that repeats finds its former places wherever its pages are.
@FunctionalInterface
public interface SmallerRuns {
    /// The best run needs pages of its own stream only.
    int OWN_PAGES = -2;

    /// Returns the block that was found, without a search.
    SmallerRuns NONE = (_, block, _) -> block;

    /// Returns the free block to take. Called under the shard's lock, so its view of other shards is a guess.
    ///
    /// @param block the best free block that begins a free run, or [Blocks#NONE]
    /// @return a free block, `block` itself, [#OWN_PAGES], or [Blocks#NONE] if the best run needs pages of others
    int best(FreeRuns freeRuns, int block, long byteSize);
}
