package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Specs of everything in the catalogue: of each allocator, of `caching` over each source, and of each adaptor.
final class EverySpec {
    /// What must be given beside a name.
    private static final Map<String, String> NEEDED = Map.of(
            "aligned", "alignment=4KiB,upstream=async",
            "arbiter", "upstream=caching",
            "confined", "upstream=\"caching:source=vmm\"",
            "events", "threshold=1TiB,upstream=async",
            "limit", "bytes=1TiB,upstream=caching",
            "prefetch", "upstream=\"caching:source=managed\"",
            "retry", "upstream=async",
            "statistics", "upstream=caching",
            "tracking", "upstream=\"caching:source=vmm\"");

    /// A library and a file have to be there first.
    private static final Set<String> NOT_HERE = Set.of("library", "logging");

    /// Options that change where memory comes from and when it goes back.
    private static final List<String> FURTHER = List.of(
            "async:release_threshold=zero",
            "async:release_threshold=adaptive",
            "async:per_stream=true",
            "async:small_pool=1MiB",
            "async:pool=default",
            "caching:expandable_segments=false",
            "caching:source=vmm,expandable_segments=false",
            "caching:splits=false",
            "caching:stable_mapping=true",
            "caching:reuse=wait",
            "caching:check=checked",
            "caching:check=paranoid",
            "symmetric:bytes=4MiB,upstream=async",
            "vmm:location=host_numa");

    private EverySpec() {}

    static List<String> list() {
        List<String> specs = new ArrayList<>(FURTHER);
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            for (Catalog.Entry entry : Plugins.catalog().entries()) {
                if (!NOT_HERE.contains(entry.name())) {
                    specs.add(opened(memory, entry));
                }
            }
        }
        return specs;
    }

    private static String opened(DeviceMemory memory, Catalog.Entry entry) {
        String name = entry.kind() == Catalog.Kind.SOURCE ? "caching:source=" + entry.name() : entry.name();
        String needed = NEEDED.get(entry.name());
        String spec = needed == null ? name : name + ':' + needed;
        try {
            memory.open(spec).close();
        } catch (ConfigurationException failure) {
            assertThat(failure).as("%s has to be added to NEEDED", spec).isNull();
        }
        return spec;
    }
}
