package io.cistern.cli.doctor;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.ModuleSupport;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Checks the value of each setting that is set, also of those that nothing would read here, with the code that
/// reads it in a program. The driver and the plug-ins have checks of their own in the diagnosis.
final class SettingChecks {
    private final Settings settings;
    private final Map<Settings.Value, List<String>> problems = new LinkedHashMap<>();

    /// Checks the values that can be checked without a device.
    SettingChecks(Settings settings) {
        this.settings = settings;
        for (Settings.Value set : settings.all()) {
            try {
                read(set).forEach(problem -> add(set, set.source() + ": " + problem));
            } catch (IllegalSettingException e) {
                add(set, String.valueOf(e.getMessage()));
            }
        }
    }

    /// @throws IllegalSettingException if the setting can't be followed
    /// @return what is wrong, if the reader of the setting throws nothing
    private static List<String> read(Settings.Value set) {
        switch (set.setting()) {
            case LIMIT,
                    DEVICE_LIMIT,
                    LEAKS,
                    CHECK,
                    HAZARDS,
                    SCOPES_REPORT,
                    COPIES_REPORT,
                    COPIES_DIRECT,
                    SIMULATED_DEVICES,
                    SIMULATED_CAPACITY -> set.check();
            case OBSERVE -> {
                return ModuleSupport.problemsOfObservers(set.text());
            }
            case CUDA_LIBRARY -> {
                return CudaDrivers.providers().stream()
                        .map(CudaDriverProvider::misconfiguredBecause)
                        .flatMap(Optional::stream)
                        .toList();
            }
            case PLUGINS_ALLOWED -> {
                return Files.isReadable(Path.of(set.text()))
                        ? List.of()
                        : List.of("'" + set.text() + "' is not a readable file");
            }
            case NVRTC_LIBRARY, NCCL_LIBRARY, NVTX_LIBRARY, ONNXRUNTIME_LIBRARY -> {
                return library(set);
            }
            case CONFIG, ALLOCATOR, DEVICE_ALLOCATOR, DEFINE, PLUGINS, DRIVER -> {
                // Checked on a device, or by the diagnosis.
            }
        }
        return List.of();
    }

    private static List<String> library(Settings.Value set) {
        if (Files.isDirectory(Path.of(set.text()))) {
            return List.of();
        }
        try {
            SharedLibrary.load("the library", set.setting(), set.text());
            return List.of();
        } catch (UnsupportedOperationException e) {
            return List.of(String.valueOf(e.getMessage()));
        }
    }

    /// Checks the values that name allocators, and those that only an allocator reads: opens each of them, and
    /// closes it again.
    void open(DeviceMemory memory) {
        settings.get(Setting.CHECK).ifPresent(set -> open(set, "caching", memory));
        List<Settings.Value> all = settings.all();
        all.stream().filter(set -> set.setting() == Setting.DEFINE).forEach(set -> open(set, set.part(), memory));
        all.stream()
                .filter(set -> set.setting() == Setting.ALLOCATOR || set.setting() == Setting.DEVICE_ALLOCATOR)
                .forEach(set -> open(set, set.text(), memory));
    }

    private void open(Settings.Value set, String spec, DeviceMemory memory) {
        failure(spec, memory).ifPresent(message -> {
            if (isKnown(message)) {
                problems.putIfAbsent(set, new ArrayList<>()); // it can't be followed because of another setting
            } else {
                add(set, message.startsWith(set.source()) ? message : set.source() + ": " + message);
            }
        });
    }

    /// Opens an allocator and closes it again.
    ///
    /// @return why it can't be opened; empty if it can
    static Optional<String> failure(String spec, DeviceMemory memory) {
        try (MemoryPool pool = memory.pools().open(spec)) {
            pool.spec();
            return Optional.empty();
        } catch (RuntimeException | LinkageError e) { // A plug-in may do anything; the diagnosis goes on.
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    private boolean isKnown(String message) {
        return problems().stream().anyMatch(message::endsWith);
    }

    private void add(Settings.Value set, String problem) {
        problems.computeIfAbsent(set, _ -> new ArrayList<>()).add(problem);
    }

    List<String> problems() {
        return problems.values().stream().flatMap(List::stream).toList();
    }

    boolean isFollowed(Settings.Value set) {
        return !problems.containsKey(set);
    }

    boolean isBad(Setting setting) {
        return problems.keySet().stream().anyMatch(set -> set.setting() == setting);
    }
}
