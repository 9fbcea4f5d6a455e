package io.cistern.cli.doctor;

import io.cistern.DeviceMemory;
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
import io.cistern.internal.names.Names;
import io.cistern.internal.names.SettingProblems;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/// Diagnoses what this machine, this JVM and the plug-ins can do, with the reason for each "no". It never
/// fails: anything missing is part of the findings.
///
/// @param jdk name and version of the Java in use
/// @param nativeAccess whether the driver binding may call native code without a warning
/// @param drivers the ways to a GPU, the preferred one first
/// @param driver the driver in use, for people
/// @param driverNotice a note on that driver, for people; empty for a real one
/// @param providers the allocators and segment sources that were found
/// @param current the allocator that is current if a program chooses none; empty if there is none
/// @param currentReason why that one is current, or why none is
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
        List<SettingValue> settings,
        List<String> problems) {
    /// The source of a setting that is not set.
    static final String DEFAULT = "default";

    /// The memory of a simulated device whose setting can't be followed.
    private static final long STAND_IN_BYTES = 1L << 37;

    /// A way to a GPU.
    ///
    /// @param name `cuda`, `simulated`
    record Driver(String name, Support support) {}

    /// An allocator or a segment source.
    record Provider(Catalog.Entry entry, Support support) {}

    /// A setting and its value.
    ///
    /// @param value the value that was set, or the default
    /// @param source where it was set, or `default`
    /// @param followed false for a value that was set and can't be followed
    record SettingValue(String key, String value, String source, boolean followed) {
        static List<SettingValue> all(Settings set, SettingChecks checks, List<String> problems) {
            List<SettingValue> all = new ArrayList<>();
            for (Setting setting : Setting.values()) {
                List<Settings.Value> values = set.all().stream()
                        .filter(value -> value.setting() == setting)
                        .toList();
                values.forEach(value -> all.add(new SettingValue(
                        value.key(),
                        value.text(),
                        value.source(),
                        checks.isFollowed(value) && problems.stream().noneMatch(one -> blames(value, one)))));
                if (values.isEmpty()) {
                    all.add(new SettingValue(setting.key(), setting.otherwise().replace("`", ""), DEFAULT, true));
                }
            }
            return all;
        }

        private static boolean blames(Settings.Value value, String problem) {
            return problem.startsWith(value.source() + ":") || problem.contains("(" + value.source() + ")");
        }
    }

    /// Looks at everything and returns the findings.
    ///
    /// @param evenSo whether to go on, without the settings concerned, if a program could not begin here because
    ///     of a limit or of the simulated GPU's memory
    /// @throws ConfigurationException if not, and the setting of a limit can't be followed
    /// @throws IllegalSettingException if not, and the setting of the simulated GPU's memory can't be followed
    static Diagnosis make(boolean evenSo) {
        List<Driver> drivers =
                CudaDrivers.providers().stream().map(Diagnosis::driver).toList();
        Settings settings = Settings.ofProcess();
        List<String> problems = new ArrayList<>(SettingProblems.of(settings));
        SettingChecks checks = new SettingChecks(settings);
        OptionalLong capacity = evenSo && checks.isBad(Setting.SIMULATED_CAPACITY)
                ? OptionalLong.of(STAND_IN_BYTES)
                : OptionalLong.empty();
        boolean withoutLimits = evenSo && (checks.isBad(Setting.LIMIT) || checks.isBad(Setting.DEVICE_LIMIT));
        try (ReplayDevice gpu = open(problems, capacity)) {
            // of a simulated GPU; a real driver has what it has
            int devices = checks.isBad(Setting.SIMULATED_DEVICES) ? 1 : SimulatedGpu.defaultDeviceCount();
            CudaDriver driver = gpu.driver(devices, 0);
            Catalog catalog = Plugins.catalogWhateverIsSet();
            try (DeviceMemory memory = withoutLimits ? withoutLimits(driver, catalog) : gpu.open(driver, catalog)) {
                checks.open(memory);
                problems.addAll(checks.problems());
                return of(drivers, gpu.notice(), driver, catalog, memory, problems, checks);
            } finally {
                gpu.release(driver);
            }
        }
    }

    private static DeviceMemory withoutLimits(CudaDriver driver, Catalog catalog) {
        return DeviceMemory.builder(driver)
                .catalog(catalog)
                .limitBytes(Long.MAX_VALUE)
                .open();
    }

    private static Diagnosis of(
            List<Driver> drivers,
            Optional<String> driverNotice,
            CudaDriver driver,
            Catalog catalog,
            DeviceMemory memory,
            List<String> problems,
            SettingChecks checks) {
        DeviceEnvironment environment = memory.environment();
        problems.addAll(SettingProblems.ofAbsentDevices(Settings.ofProcess(), environment.deviceCount()));
        catalog.entries()
                .forEach(entry -> entry.problem()
                        .ifPresent(problem -> problems.add(Names.of(entry.name(), entry.origin()) + ": " + problem)));
        Optional<String> current = Optional.empty();
        String reason;
        try {
            Catalog.Choice choice =
                    environment.deviceCount() > 0 ? catalog.choose(environment, 0) : catalog.choose(environment);
            String spec = choice.spec().text();
            Optional<String> failure = SettingChecks.failure(spec, memory);
            if (failure.isPresent()) {
                throw new ConfigurationException(failure.get());
            }
            current = Optional.of(spec);
            reason = choice.reason();
        } catch (ConfigurationException e) {
            reason = String.valueOf(e.getMessage());
            if (problems.stream().noneMatch(reason::endsWith)) {
                problems.add("no allocator is current: " + reason);
            }
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
                SettingValue.all(Settings.ofProcess(), checks, problems),
                problems.stream().distinct().toList());
    }

    private static Driver driver(CudaDriverProvider provider) {
        return new Driver(
                provider.name(), provider.unavailableBecause().map(Support::no).orElse(Support.yes()));
    }

    /// Opens the device that a program gets if it names no driver. If that fails, it notes the problem and
    /// opens a simulated GPU.
    private static ReplayDevice open(List<String> problems, OptionalLong capacity) {
        try {
            ReplayDevice gpu = ReplayDevice.open("auto", capacity);
            if (gpu instanceof ReplayDevice.Simulated simulated && !simulated.asked()) {
                problems.add("no GPU can be used, so programs run on a simulated one: " + simulated.why());
            }
            return gpu;
        } catch (UsageException | IllegalSettingException e) {
            problems.add(String.valueOf(e.getMessage()));
            return new ReplayDevice.Simulated(capacity, false, String.valueOf(e.getMessage()));
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

    /// Returns what a device has or lacks, in the order of [DriverFeature], by names for people.
    static Map<String, Support> features(DeviceCapabilities device) {
        Map<String, Support> features = new LinkedHashMap<>();
        for (DriverFeature feature : DriverFeature.values()) {
            features.put(feature.name().toLowerCase(Locale.ROOT).replace('_', ' '), device.supports(feature));
        }
        return features;
    }
}
