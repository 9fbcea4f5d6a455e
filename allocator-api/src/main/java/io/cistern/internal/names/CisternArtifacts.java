package io.cistern.internal.names;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/// Names the artifact of Cistern that provides an allocator or segment source, for error messages about a
/// missing JAR.
public final class CisternArtifacts {
    private static final String ADAPTORS = "cistern-adaptors";
    private static final String ASYNC = "cistern-async-allocator";
    private static final String NCCL = "cistern-nccl-allocator";

    private static final Map<String, String> BY_NAME = Map.ofEntries(
            Map.entry("aligned", ADAPTORS),
            Map.entry("arbiter", "cistern-memory-pressure"),
            Map.entry("async", ASYNC),
            Map.entry("caching", "cistern-caching-allocator"),
            Map.entry("confined", ADAPTORS),
            Map.entry("driver_pool", ASYNC),
            Map.entry("events", ADAPTORS),
            Map.entry("limit", ADAPTORS),
            Map.entry("logging", ADAPTORS),
            Map.entry("nccl", NCCL),
            Map.entry("prefetch", ADAPTORS),
            Map.entry("retry", ADAPTORS),
            Map.entry("statistics", ADAPTORS),
            Map.entry("symmetric", NCCL),
            Map.entry("tracking", ADAPTORS),
            Map.entry("vmm", NCCL));

    private CisternArtifacts() {}

    /// Returns all names that an allocator may have, given these allocators and sources: each source also
    /// names an allocator, `caching` over it.
    public static List<String> ofAllocators(Collection<String> allocators, Collection<String> sources) {
        List<String> names = new ArrayList<>(allocators);
        if (allocators.contains("caching")) {
            names.addAll(sources);
        }
        return names;
    }

    /// Returns what a message about a missing provider says: which JAR has it, if the name is one of Cistern's
    /// own that is not always present, and the known names.
    public static String cure(String name, Collection<String> known) {
        String artifact = BY_NAME.get(name);
        return (artifact == null ? "" : "add " + artifact + ", which provides it; ") + "known, nearest first: "
                + NearestName.listed(name, known);
    }
}
