package io.cistern.internal.names;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/// The names of segment sources, each of which is an allocator too: `caching` over it.
public final class SourceNames {
    private static final String OVER_SOURCES = "caching";

    private SourceNames() {}

    /// Returns all names that an allocator may have, given these allocators and sources.
    public static List<String> asAllocators(Collection<String> allocators, Collection<String> sources) {
        List<String> names = new ArrayList<>(allocators);
        if (allocators.contains(OVER_SOURCES)) {
            names.addAll(sources);
        }
        return names;
    }
}
