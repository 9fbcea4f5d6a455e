package io.cistern.cli.doctor;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.DeviceChoice;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.common.ReplayDevice;
import io.cistern.cli.common.UsageException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.Support;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/// Diagnoses what this machine, this JVM and the plug-ins can do, with the reason for each "no". It never
/// fails: anything missing is part of the findings.
///
/// @param jdk name and version of the Java in use
/// @param jdkHome its folder
/// @param nativeAccess whether the driver binding may call native code without a warning
/// @param drivers the ways to a GPU, the preferred one first
/// @param driver the driver in use, for people
/// @param driverNotice a note on that driver, for people; empty for a real one
/// @param simulated whether its devices are simulated
/// @param capabilities what driver and devices can do
/// @param pools the pools of each device
/// @param providers the allocators and segment sources that were found
/// @param current the allocator that is current if a program chooses none; empty if there is none
/// @param currentReason why that one is current, or why none is
/// @param settings all settings with their values
/// @param problems obstacles for a program here: settings that can't be followed, a driver that was set up
///     wrongly, a simulation that nobody asked for, plug-ins that can't be used, no current allocator
record Diagnosis(
        String jdk,
        String jdkHome,
        Support nativeAccess,
        List<Driver> drivers,
        String driver,
        Optional<String> driverNotice,
        boolean simulated,
        DriverCapabilities capabilities,
        List<PoolDiagnosis> pools,
        List<Provider> providers,
        Optional<String> current,
        String currentReason,
        List<Settled> settings,
        List<String> problems) {
    /// A way to a GPU.
    ///
    /// @param name `cuda`, `simulated`
    /// @param support whether it can be used here
    record Driver(String name, Support support) {}

    /// An allocator or a segment source.
    ///
    /// @param entry its entry in the catalogue
    /// @param support whether it can be used here
    record Provider(Catalog.Entry entry, Support support) {}

    /// A setting and its value.
    ///
    /// @param key the setting's name
    /// @param value the value in use, set or default
    /// @param source where it was set, or `default`
    record Settled(String key, String value, String source) {
        static List<Settled> all(Settings set) {
            List<Settled> all = new ArrayList<>();
            for (Setting setting : Setting.values()) {
                List<Settings.Value> values = set.all().stream()
                        .filter(value -> value.setting() == setting)
                        .toList();
                values.forEach(value -> all.add(new Settled(value.key(), value.text(), value.source())));
                if (values.isEmpty()) {
                    all.add(new Settled(setting.key(), setting.otherwise().replace("`", ""), "default"));
                }
            }
            return all;
        }
    }

    /// Looks at everything and returns the findings.
    static Diagnosis make() {
        List<Driver> drivers =
                CudaDrivers.providers().stream().map(Diagnosis::driver).toList();
        List<String> problems = new ArrayList<>(SettingProblems.of(Settings.ofProcess()));
        try (ReplayDevice gpu = open(problems)) {
            CudaDriver driver = gpu.driver();
            Catalog catalog = Plugins.catalogWhateverIsSet();
            try (DeviceMemory memory = gpu.open(driver, catalog)) {
                return of(drivers, gpu.notice(), driver, catalog, memory.environment(), problems);
            } finally {
                gpu.release(driver);
            }
        }
    }

    private static Diagnosis of(
            List<Driver> drivers,
            Optional<String> driverNotice,
            CudaDriver driver,
            Catalog catalog,
            DeviceEnvironment environment,
            List<String> problems) {
        problems.addAll(SettingProblems.ofAbsentDevices(Settings.ofProcess(), environment.deviceCount()));
        catalog.entries()
                .forEach(entry -> entry.problem().ifPresent(problem -> problems.add(entry.name() + ": " + problem)));
        Optional<String> current = Optional.empty();
        String reason;
        try {
            Catalog.Choice choice = catalog.choose(environment);
            current = Optional.of(choice.spec().text());
            reason = choice.reason();
        } catch (ConfigurationException e) {
            reason = String.valueOf(e.getMessage());
            problems.add("no allocator is current: " + reason);
        }
        return new Diagnosis(
                System.getProperty("java.vm.name") + " " + Runtime.version(),
                System.getProperty("java.home"),
                mayCallNatively(),
                drivers,
                driver.description(),
                driverNotice,
                driver.simulated(),
                driver.capabilities(),
                IntStream.range(0, driver.capabilities().devices().size())
                        .mapToObj(device -> PoolDiagnosis.of(driver, device))
                        .toList(),
                catalog.entries().stream()
                        .map(entry -> new Provider(entry, support(entry, catalog, environment)))
                        .toList(),
                current,
                reason,
                Settled.all(Settings.ofProcess()),
                problems.stream().distinct().toList());
    }

    private static Driver driver(CudaDriverProvider provider) {
        return new Driver(
                provider.name(), provider.unavailableBecause().map(Support::no).orElse(Support.yes()));
    }

    /// Opens the device that a program gets if it names no driver. If that fails, it notes the problem and
    /// opens a simulated GPU.
    private static ReplayDevice open(List<String> problems) {
        try {
            ReplayDevice gpu = DeviceChoice.open("auto", OptionalLong.empty());
            if (gpu instanceof ReplayDevice.Simulated simulated && !simulated.asked()) {
                problems.add("nobody asked for a simulated GPU, but no real one can be used: " + simulated.why());
            }
            return gpu;
        } catch (UsageException | IllegalSettingException e) {
            problems.add(String.valueOf(e.getMessage()));
            return new ReplayDevice.Simulated(OptionalLong.empty(), false, String.valueOf(e.getMessage()));
        }
    }

    private static Support mayCallNatively() {
        return CudaDriver.class.getModule().isNativeAccessEnabled()
                ? Support.yes()
                : Support.no(
                        "start the JVM with --enable-native-access=io.cistern.cuda, or ALL-UNNAMED on the class path");
    }

    private static Support support(Catalog.Entry entry, Catalog catalog, DeviceEnvironment environment) {
        if (entry.problem().isPresent()) {
            return Support.no(entry.problem().get());
        }
        try {
            Availability availability = switch (entry.kind()) {
                case ALLOCATOR -> catalog.allocator(entry.name()).availability(environment);
                case SOURCE -> catalog.source(entry.name()).availability(environment);
            };
            return availability.available() ? Support.yes() : Support.no(availability.reason());
        } catch (RuntimeException | LinkageError e) { // A plug-in may do anything; the diagnosis goes on.
            return Support.no("its availability check failed: " + e);
        }
    }

    /// Returns a device's answers in the order of [DriverFeature].
    static List<Feature> features(DeviceCapabilities device) {
        List<Feature> features = new ArrayList<>();
        for (DriverFeature feature : DriverFeature.values()) {
            features.add(new Feature(
                    feature.name().toLowerCase(java.util.Locale.ROOT).replace('_', ' '), device.supports(feature)));
        }
        return features;
    }

    /// A feature that a device has or lacks.
    ///
    /// @param name for people
    /// @param support the answer
    record Feature(String name, Support support) {}
}
