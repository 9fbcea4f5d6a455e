package io.cistern.caching.internal.thread;

/// How many of the blocks that it freed a thread keeps.
///
/// @param used whether threads keep any
/// @param bytes the most bytes of small blocks that each thread keeps
public record ThreadCacheLimit(boolean used, long bytes) {
    /// Enough for hundreds of live blocks of mixed sizes. Misses that need memory empty the thread caches first.
    private static final long USUAL_BYTES = 32L << 20;

    public static final ThreadCacheLimit USUAL = new ThreadCacheLimit(true, USUAL_BYTES);

    public static final ThreadCacheLimit NONE = new ThreadCacheLimit(false, 0);
}
