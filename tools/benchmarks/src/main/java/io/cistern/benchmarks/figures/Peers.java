package io.cistern.benchmarks.figures;

import java.util.Map;

/// Maps the specs in raw output to the allocators' names for readers.
final class Peers {
    private static final Map<String, String> NAMES = Map.of(
            "caching", "`caching`",
            "async", "`async`",
            "caching:reuse=wait", "`caching:reuse=wait`",
            "caching:reuse=never", "`caching:reuse=never`",
            "torch", "PyTorch 2.11",
            "torch:expandable_segments:True", "PyTorch, expandable",
            "cudaMallocAsync", "`cudaMallocAsync` (C)");

    private Peers() {}

    static String name(String spec) {
        return NAMES.getOrDefault(spec, spec);
    }
}
