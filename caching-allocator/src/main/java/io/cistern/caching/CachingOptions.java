package io.cistern.caching;

import io.cistern.spi.AllocatorOptions;

/// The options of `caching`.
///
/// @param source the spec of the segment source
/// @param pageBytes the size of every page, or 0 for sizes that follow what is reserved
record CachingOptions(String source, long pageBytes) {
    static CachingOptions read(AllocatorOptions options) {
        return new CachingOptions(
                options.text("source").orElse("pages"),
                options.bytes("page_size").orElse(0L));
    }
}
