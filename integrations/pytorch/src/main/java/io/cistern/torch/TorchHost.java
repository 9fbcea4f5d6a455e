package io.cistern.torch;

import io.cistern.DeviceMemory;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The entry point from JNI: opens the process's device memory and hands out the functions that PyTorch's
/// hooks call.
///
/// **Threads.** One thread at a time.
final class TorchHost {
    /// A limit that refuses nothing. PyTorch may set a fraction at any time, and the limit must count blocks
    /// that are live by then, so every device has a limit from the start.
    private static final String NO_LIMIT = "4194304TiB";

    /// The settings with which the device memory was opened; null before.
    private static volatile @Nullable Map<String, String> openedWith;

    private TorchHost() {}

    /// Opens the device memory; called from C. After a failure it can be called again with another allocator.
    ///
    /// @param table where to write the addresses of the functions
    /// @param allocator an allocator's spec, or null for the configured one
    /// @param settings settings made in code, one per line: `cistern.limit=8GiB`
    /// @return null, or the reason of a failure
    static @Nullable String open(long table, @Nullable String allocator, String settings) {
        Map<String, String> set = settings.lines()
                .map(line -> line.split("=", 2))
                .collect(Collectors.toMap(words -> words[0], words -> words[1]));
        try {
            set.forEach(System::setProperty);
            DeviceMemory memory = memory(set);
            openedWith = set;
            choose(memory, allocator);
            new TorchFunctions(memory).writeTo(table);
            return null;
        } catch (Throwable failure) {
            set.keySet().forEach(System::clearProperty);
            return Failure.text(failure);
        }
    }

    /// Checks that the settings did not change. Device memory is opened once in a process, and an earlier
    /// call may have opened it and then failed because of its allocator.
    private static void requireSameSettings(Map<String, String> set) {
        Map<String, String> before = openedWith;
        if (before != null && !before.equals(set)) {
            throw new ConfigurationException(
                    "an earlier, failed enable() already opened the device memory with the settings " + before
                            + ", which stay until the process ends: call enable() with them, or restart the process");
        }
    }

    private static DeviceMemory memory(Map<String, String> set) {
        List<String> problems = SettingProblems.of(Settings.ofProcess());
        if (!problems.isEmpty()) {
            throw new ConfigurationException(String.join("; ", problems));
        }
        requireSameSettings(set);
        if (Settings.ofProcess().all().stream().noneMatch(TorchHost::isLimit)) {
            System.setProperty(Setting.LIMIT.key(), NO_LIMIT);
        }
        DeviceMemory memory = DeviceMemory.system();
        if (memory.driver().simulated() && !isSimulationAskedFor()) {
            throw new ConfigurationException("no CUDA driver can be used, and PyTorch can't use the simulated GPU; see"
                    + " the warning above for the reason");
        }
        return memory;
    }

    private static boolean isLimit(Settings.Value value) {
        return value.setting() == Setting.LIMIT || value.setting() == Setting.DEVICE_LIMIT;
    }

    private static boolean isSimulationAskedFor() {
        return Settings.ofProcess()
                .get(Setting.DRIVER)
                .filter(set -> set.text().equals("simulated"))
                .isPresent();
    }

    private static void choose(DeviceMemory memory, @Nullable String allocator) {
        Optional<TorchString> string = TorchString.in(System.getenv());
        if (allocator != null) {
            memory.setCurrent(string.isEmpty() ? allocator : string.get().addedTo(AllocatorSpec.parse(allocator)));
        }
        List<AllocatorSpec> current = IntStream.range(0, memory.environment().deviceCount())
                .mapToObj(device -> memory.current(device).spec())
                .distinct()
                .toList();
        if (allocator == null && string.isPresent()) {
            addTo(memory, current, string.get());
        }
    }

    private static void addTo(DeviceMemory memory, List<AllocatorSpec> configured, TorchString string) {
        if (configured.size() == 1) {
            memory.setCurrent(string.addedTo(configured.getFirst()));
        } else {
            TorchString.warn(string.variable() + " has no effect: the devices have different allocators, " + configured
                    + "; give each the option 'pytorch'");
        }
    }
}
