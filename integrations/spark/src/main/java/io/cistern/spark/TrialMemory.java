package io.cistern.spark;

import io.cistern.DeviceMemory;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorSpec;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Opens the configured allocators as an executor does, on simulated devices, since Spark's driver rarely has a GPU.
/// It leaves to the executor what only the executor's machine can tell: files, plug-ins that are not here, and
/// allocators that can't run on simulated devices.
final class TrialMemory {
    private static final List<Setting> OF_ALLOCATORS = List.of(Setting.ALLOCATOR, Setting.DEVICE_ALLOCATOR);

    private TrialMemory() {}

    /// @param settings those of executors, which are applied here
    /// @throws ConfigurationException if a spec can't be followed
    static void open(List<Settings.Value> settings) {
        List<Settings.Value> specs = settings.stream()
                .filter(set -> OF_ALLOCATORS.contains(set.setting()) && !namesFile(set, settings))
                .toList();
        boolean lacksPlugins = settings.stream()
                .anyMatch(set -> set.setting() == Setting.PLUGINS && !Files.isDirectory(Path.of(set.text())));
        if (specs.isEmpty() || lacksPlugins) {
            return;
        }
        Catalog catalog = Catalog.discover(List.of(), List.of());
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog).open()) {
            specs.forEach(set -> open(set, catalog, memory));
        }
    }

    /// Whether a spec, or the definition that it names, has the path of a file.
    private static boolean namesFile(Settings.Value set, List<Settings.Value> settings) {
        return set.text().contains("/")
                || settings.stream()
                        .filter(each ->
                                each.setting() == Setting.DEFINE && each.text().contains("/"))
                        .anyMatch(each ->
                                set.text().equals(each.part()) || set.text().startsWith(each.part() + ":"));
    }

    private static void open(Settings.Value set, Catalog catalog, DeviceMemory memory) {
        try {
            AllocatorSpec spec = catalog.complete(AllocatorSpec.parse(set.text()));
            if (catalog.allocator(spec.name())
                    .availability(memory.environment())
                    .available()) {
                memory.pools().open(set.text()).close();
            }
        } catch (ConfigurationException e) {
            throw new ConfigurationException(set.source() + ": " + e.getMessage(), e);
        }
    }
}
