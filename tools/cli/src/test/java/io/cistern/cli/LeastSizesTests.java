package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// A size with which nothing could ever be served is refused when it is written, with the option and what is legal;
/// every size that is accepted serves.
final class LeastSizesTests {
    private static final long CAPACITY_BYTES = 128L << 20;

    /// The option that each row is about comes first.
    private static final List<String> TEMPLATES = List.of(
            "aligned:alignment=%s,upstream=async",
            "async:initial_size=%s",
            "async:max_size=%s",
            "async:release_threshold=%s",
            "async:small_pool=%s",
            "caching:alignment=%s,max_bytes=2MiB",
            "caching:alignment=%s,max_bytes=2MiB,expandable_segments=false",
            "caching:compaction_bytes=%s",
            "caching:initial_bytes=%s",
            "caching:initial_bytes=%s,max_bytes=8MiB",
            "caching:initial_bytes=%s,max_bytes=8MiB,alignment=4096",
            "caching:initial_bytes=%s,per_process_memory_fraction=0.1,expandable_segments=false",
            "caching:max_bytes=%s",
            "caching:max_bytes=%s,check=checked",
            "caching:max_bytes=%s,expandable_segments=false",
            "caching:max_bytes=%s,page_size=32MiB",
            "caching:max_bytes=%s,source=driver_pool",
            "caching:max_bytes=%s,source=managed",
            "caching:max_bytes=%s,source=nccl",
            "caching:max_bytes=%s,source=vmm",
            "caching:max_bytes=%s,splits=false",
            "caching:page_size=%s",
            "caching:page_size=%s,max_bytes=8MiB",
            "caching:thread_cache_bytes=%s,max_bytes=2MiB",
            "driver_pool:initial_size=%s,release_threshold=keep_all",
            "driver_pool:max_size=%s",
            "driver_pool:release_threshold=%s",
            "driver_pool:small_pool=%s",
            "events:threshold=%s,upstream=async",
            "limit:bytes=%s,upstream=async",
            "symmetric:bytes=%s",
            "symmetric:largest=%s",
            "vmm:alignment=%s");

    private static final List<String> SIZES = List.of(
            "0", "1", "256", "1000", "4096", "64KiB", "1MiB", "2097151", "2MiB", "3MiB", "7MiB", "8MiB", "9MiB",
            "32MiB", "64MiB", "127MiB", "128MiB", "256MiB", "1GiB", "1TiB");

    static List<String> templates() {
        return TEMPLATES;
    }

    @ParameterizedTest
    @MethodSource("templates")
    void whatIsAcceptedServes(String template) {
        List<String> refused = new ArrayList<>();
        for (String size : SIZES) {
            String spec = template.formatted(size);
            try (SimulatedGpu gpu =
                            SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
                    DeviceMemory memory =
                            DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
                memory.setCurrent(spec);
                memory.free(memory.allocate(1, 0, 0), 0);
            } catch (ConfigurationException notLegal) {
                assertThat(notLegal).as(spec).hasMessageContaining(optionOf(template));
                refused.add(size);
            }
        }
        assertThat(refused).as("sizes refused by %s", template).isNotEqualTo(SIZES);
    }

    private static String optionOf(String template) {
        return template.substring(template.indexOf(':') + 1, template.indexOf('='));
    }

    @Test
    void everyOptionThatIsASizeHasATemplate() {
        Set<String> missing = new TreeSet<>();
        Stream.concat(
                        ServiceLoader.load(AllocatorProvider.class).stream()
                                .map(ServiceLoader.Provider::get)
                                .flatMap(each -> each.options().stream().map(option -> name(each.name(), option))),
                        ServiceLoader.load(SegmentSourceProvider.class).stream()
                                .map(ServiceLoader.Provider::get)
                                .flatMap(each -> each.options().stream().map(option -> name(each.name(), option))))
                .filter(name -> !name.isEmpty() && TEMPLATES.stream().noneMatch(each -> each.startsWith(name)))
                .forEach(missing::add);
        assertThat(missing).isEmpty();
    }

    /// Returns the start of a template for an option that is a size; empty for others.
    private static String name(String allocator, SpecOption<?> option) {
        boolean isSize = option.legal().contains("bytes") || option.legal().contains("iB");
        return isSize ? allocator + ':' + option.key() + '=' : "";
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "caching:max_bytes=1MiB                      | max_bytes     | from 2MiB (a page)",
                "caching:initial_bytes=256,max_bytes=1024    | max_bytes     | from 2MiB (a page)",
                "caching:max_bytes=1MiB,expandable_segments=false | max_bytes | from 2MiB (a page)",
                "caching:per_process_memory_fraction=0.0001  | per_process_memory_fraction allows 13421 | at least 2097152 bytes",
                "caching:per_process_memory_fraction=0       | per_process_memory_fraction allows 0 | at least 2097152 bytes",
                "caching:max_bytes=8MiB,page_size=32MiB      | max_bytes allows 8388608 | at least 33554432 bytes",
                "caching:page_size=1GiB                      | page_size=1073741824 | at most the device",
                "caching:initial_bytes=1GiB                  | initial_bytes=1073741824 | 134217728 are available",
                "caching:initial_bytes=7MiB,max_bytes=7MiB   | initial_bytes=7340032 | 8388608 bytes in whole pages",
                "async:initial_size=1GiB                     | initial_size=1073741824 | at most the device's memory",
                "limit:bytes=0,upstream=async                | bytes         | at least 1",
                "aligned:alignment=1TiB,upstream=async       | alignment=1099511627776 | less than that",
                "vmm:alignment=1GiB                          | alignment=1073741824 | at most that",
            })
    void whatCouldNeverServeIsRefusedWithTheWayOut(String spec, String option, String wayOut) {
        try (SimulatedGpu gpu =
                        SimulatedGpu.builder().capacityBytes(CAPACITY_BYTES).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            assertThatThrownBy(() -> memory.open(spec))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining(option)
                    .hasMessageContaining(wayOut);
        }
    }
}
