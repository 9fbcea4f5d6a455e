package io.cistern.cli.allocators;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;

/// The specs of all allocators that are found: each by its name, adaptors over two upstreams, `caching` over each
/// source, and the kinds of pools of `async`.
final class EveryAllocator {
    /// Options that some allocators need.
    private static final Map<String, String> NEEDED = Map.of(
            "aligned", "alignment=4096",
            "events", "threshold=900MiB",
            "limit", "bytes=900MiB",
            "logging", "file=" + traceFile());

    /// Runs native code.
    private static final List<String> LEFT_OUT = List.of("library");

    private static final List<String> POOLS = List.of(
            "async:per_stream=true",
            "async:release_threshold=adaptive",
            "async:release_threshold=zero",
            "async:small_pool=1MiB",
            "async:location=host",
            "async:location=host_numa",
            "async:location=managed",
            "caching:check=paranoid",
            "caching:reuse=wait",
            "caching:reuse=never",
            "caching:source=vmm,expandable_segments=false");

    private EveryAllocator() {}

    static List<String> specs() {
        List<String> specs = new ArrayList<>(POOLS);
        try (SimulatedGpu gpu = gpu();
                DeviceMemory memory = memory(gpu)) {
            for (Catalog.Entry entry : catalog().entries()) {
                if (LEFT_OUT.contains(entry.name())) {
                    continue;
                }
                if (entry.kind() == Catalog.Kind.SOURCE) {
                    specs.add("caching:source=" + entry.name());
                } else {
                    specs.addAll(specs(memory, entry.name()));
                }
            }
        }
        return specs;
    }

    private static List<String> specs(DeviceMemory memory, String name) {
        String needed = NEEDED.getOrDefault(name, "");
        List<String> over = List.of(
                name + ":upstream=async" + (needed.isEmpty() ? "" : "," + needed),
                name + ":upstream=caching" + (needed.isEmpty() ? "" : "," + needed));
        if (opens(memory, over.getFirst())) {
            return over;
        }
        String alone = name + (needed.isEmpty() ? "" : ":" + needed);
        memory.open(alone).close(); // or fails: then it needs an option above
        return List.of(alone);
    }

    private static boolean opens(DeviceMemory memory, String spec) {
        try {
            memory.open(spec).close();
            return true;
        } catch (ConfigurationException noAdaptor) {
            return false;
        }
    }

    private static Catalog catalog() {
        return ServiceLoader.load(CatalogProvider.class)
                .findFirst()
                .orElseThrow()
                .discover(EveryAllocator.class.getClassLoader());
    }

    static SimulatedGpu gpu() {
        return SimulatedGpu.builder().devices(1).capacityBytes(1L << 30).build();
    }

    static DeviceMemory memory(SimulatedGpu gpu) {
        return DeviceMemory.builder(gpu).catalog(catalog()).open();
    }

    private static String traceFile() {
        try {
            Path file = Files.createTempFile("trace", ".csv");
            file.toFile().deleteOnExit();
            return file.toString();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
