package io.cistern.loader;

import java.util.Map;
import java.util.Optional;

/// Names the artifact of Cistern that provides an allocator or segment source, for error messages about a
/// missing JAR.
final class CisternArtifacts {
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

    /// Returns the artifact, if the name is one of Cistern's own that is not always present.
    static Optional<String> bringing(String name) {
        return Optional.ofNullable(BY_NAME.get(name));
    }
}
