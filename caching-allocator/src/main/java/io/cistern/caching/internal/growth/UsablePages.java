package io.cistern.caching.internal.growth;

import io.cistern.caching.internal.page.Page;

/// Tells which pages may come back to their aliased blocks.
@FunctionalInterface
interface UsablePages {
    boolean has(Page page);
}
