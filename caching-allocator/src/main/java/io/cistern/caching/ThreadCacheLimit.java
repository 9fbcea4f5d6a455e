package io.cistern.caching;

/// What threads keep of the blocks that they freed.
///
/// @param used whether anything
/// @param bytes how much of small blocks each, or 0 for an amount that follows what is reserved
record ThreadCacheLimit(boolean used, long bytes) {
    /// The most that `bytes` may be: more would be most of what small blocks of any program take.
    static final long LARGEST = 1L << 30;

    static final ThreadCacheLimit USUAL = new ThreadCacheLimit(true, 0);

    static final ThreadCacheLimit NONE = new ThreadCacheLimit(false, 0);
}
