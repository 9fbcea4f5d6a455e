package io.cistern.caching.internal.base;

/// The sizes of the blocks that serve requests.
///
/// @param rounding where sizes are in no class
/// @param inClasses whether small blocks have the sizes of [SizeClasses], so that thread caches can keep them
public record BlockSizes(Rounding rounding, boolean inClasses) {
    /// What a request for so many bytes takes of a shard.
    public long rounded(long byteSize) {
        return inClasses && SizeClasses.has(byteSize) ? SizeClasses.rounded(byteSize) : rounding.rounded(byteSize);
    }
}
