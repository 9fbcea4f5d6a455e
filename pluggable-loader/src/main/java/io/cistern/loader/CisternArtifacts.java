package io.cistern.loader;

import java.util.Map;
import java.util.Optional;

/// Which of Cistern's artifacts brings an allocator or a segment source of a name, for who asks for one whose JAR is
/// missing.
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
            Map.entry("retry", ADAPTORS),
            Map.entry("statistics", ADAPTORS),
            Map.entry("symmetric", NCCL),
            Map.entry("tracking", ADAPTORS),
            Map.entry("vmm", NCCL));

    private CisternArtifacts() {}

    /// The artifact, if the name is one of Cistern's own that is not always there.
    static Optional<String> bringing(String name) {
        return Optional.ofNullable(BY_NAME.get(name));
    }
}
