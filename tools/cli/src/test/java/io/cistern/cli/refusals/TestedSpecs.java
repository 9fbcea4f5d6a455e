package io.cistern.cli.refusals;

import java.util.List;
import java.util.Map;

/// The allocators and sources on which the oracle looks.
final class TestedSpecs {
    /// Each allocator and source of the catalogue, and the options that decide what serves a request.
    static final List<String> ALL = List.of(
            "caching",
            "caching:fit=tight",
            "caching:reuse=never",
            "caching:reuse=wait",
            "caching:stable_mapping=true",
            "caching:compaction_bytes=0",
            "caching:page_size=4MiB",
            "caching:page_size=32MiB",
            "caching:alignment=4096",
            "caching:splits=false",
            "caching:thread_caches=false",
            "caching:thread_cache_bytes=1MiB",
            "caching:initial_bytes=24MiB",
            "caching:max_bytes=48MiB",
            "caching:check=checked",
            "caching:expandable_segments=false",
            "caching:per_process_memory_fraction=0.5",
            "caching:source=pages",
            "caching:source=linear",
            "caching:source=managed",
            "caching:source=driver_pool",
            "caching:source=vmm",
            "caching:source=nccl",
            "nccl",
            "vmm",
            "symmetric:bytes=16MiB,largest=4MiB",
            "direct",
            "linear",
            "pages",
            "managed",
            "driver_pool",
            "async",
            "async:pool=default",
            "async:per_stream=true",
            "async:release_threshold=zero",
            "async:release_threshold=adaptive",
            "async:reuse_follow_event_dependencies=false",
            "async:reuse_allow_opportunistic=false",
            "async:reuse_allow_internal_dependencies=false",
            "async:max_size=64MiB",
            "async:small_pool=1MiB",
            "async:initial_size=24MiB",
            "async:location=managed",
            "async:location=host",
            "aligned:alignment=4096,upstream=caching",
            "confined:upstream=caching",
            "events:threshold=1TiB,upstream=caching",
            "limit:bytes=48MiB,upstream=caching",
            "logging:file=/dev/null,upstream=caching",
            "prefetch:upstream=\"caching:source=managed\"",
            "retry:attempts=1,upstream=caching",
            "statistics:upstream=caching",
            "tracking:upstream=caching",
            "tracking:upstream=async",
            "statistics:upstream=direct",
            "arbiter:patience_millis=1,upstream=caching",
            "arbiter:patience_millis=1,upstream=async");

    static final Map<String, String> LEFT_OUT = Map.of(
            "library", "it needs a C library",
            "pytorch-native", "it keeps holes from other segments and streams, as PyTorch does",
            "pytorch-expandable", "likewise");

    private TestedSpecs() {}
}
