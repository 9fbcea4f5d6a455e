package io.cistern.caching.internal.shard;

/// Ranges of block sizes that have shards and arenas of their own.
///
/// Small blocks would cut up the room of others, and there are many of them. Middle ones would do so to large
/// ones: those that a program keeps for long, strewn between large ones that come and go, each keep a part of a
/// page from everybody else. They are apart where memory grows by pages that move, since an idle page serves
/// either range then, and [not on the first stream][Shards].
public enum SizeRange {
    /// Up to [Sizes#SMALL_LIMIT][io.cistern.caching.internal.base.Sizes#SMALL_LIMIT].
    SMALL,
    /// Up to [Sizes#MIDDLE_LIMIT][io.cistern.caching.internal.base.Sizes#MIDDLE_LIMIT].
    MIDDLE,
    /// All others.
    LARGE
}
