package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.page.Page;

/// Tells which pages may come back to their aliased blocks.
@FunctionalInterface
public interface UsablePages {
    boolean has(Page page);
}
