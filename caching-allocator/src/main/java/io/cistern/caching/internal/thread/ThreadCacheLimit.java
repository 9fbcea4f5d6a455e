package io.cistern.caching.internal.thread;

/// What threads keep of the blocks that they freed.
///
/// @param used whether anything
/// @param bytes how much of small blocks each, or 0 for an amount that follows what is reserved
public record ThreadCacheLimit(boolean used, long bytes) {
    /// The most that `bytes` may be: more would be most of what small blocks of any program take.
    public static final long LARGEST = 1L << 30;

    public static final ThreadCacheLimit USUAL = new ThreadCacheLimit(true, 0);

    public static final ThreadCacheLimit NONE = new ThreadCacheLimit(false, 0);
}
