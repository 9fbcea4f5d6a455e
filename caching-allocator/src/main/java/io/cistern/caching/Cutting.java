package io.cistern.caching;

/// How free blocks are cut for smaller requests.
///
/// @param splits whether they are cut at all; if not, a block is a whole segment
/// @param keptWhole free blocks of this many bytes and more do not serve requests much smaller than they are
record Cutting(boolean splits, long keptWhole) {
    /// Every block may be cut for every request.
    static final Cutting ANY = new Cutting(true, Long.MAX_VALUE);
}
