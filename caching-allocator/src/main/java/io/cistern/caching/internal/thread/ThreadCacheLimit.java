package io.cistern.caching.internal.thread;

/// What threads keep of the blocks that they freed.
///
/// @param used whether anything
/// @param bytes how much of small blocks each at most
public record ThreadCacheLimit(boolean used, long bytes) {
    /// The most that `bytes` may be: more would be most of what small blocks of any program take.
    public static final long LARGEST = 1L << 30;

    /// Serves 64 live blocks of mixed sizes. Misses that need memory empty the thread caches first.
    private static final long USUAL_BYTES = 32L << 20;

    public static final ThreadCacheLimit USUAL = new ThreadCacheLimit(true, USUAL_BYTES);

    public static final ThreadCacheLimit NONE = new ThreadCacheLimit(false, 0);
}
