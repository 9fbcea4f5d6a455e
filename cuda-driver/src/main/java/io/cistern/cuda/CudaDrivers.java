package io.cistern.cuda;

import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;

/// Finds drivers through [ServiceLoader]. Thread-safe.
public final class CudaDrivers {
    private static final String AUTO = "auto";
    private static final Map<String, String> CLASS_NAMES = Map.of(
            "cuda", "io.cistern.cuda.ffm.NativeDriverProvider",
            "simulated", "io.cistern.simulated.SimulatedDriverProvider");
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private CudaDrivers() {}

    /// Returns every provider found, the highest priority first.
    ///
    /// @throws java.util.ServiceConfigurationError if a declared provider can't be instantiated
    public static List<CudaDriverProvider> providers() {
        return ServiceLoader.load(CudaDriverProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .sorted(Comparator.comparingInt(CudaDriverProvider::priority)
                        .reversed()
                        .thenComparing(CudaDriverProvider::name))
                .toList();
    }

    /// Opens the driver that [#choose()] chooses; the caller closes it. If that driver is a simulation that no
    /// setting asked for, this logs a warning with the reason, but only once per JVM.
    ///
    /// @throws IllegalArgumentException if the setting `cistern.driver` names a driver that does not exist
    /// @throws IllegalStateException if no driver can be chosen: see [#choose()]
    /// @throws CudaException if the chosen driver can't be initialised
    public static CudaDriver openBest() {
        DriverChoice choice = choose();
        CudaDriver driver = choice.provider().open();
        if (driver.simulated() && !choice.asked() && WARNED.compareAndSet(false, true)) {
            System.getLogger(CudaDrivers.class.getName()).log(System.Logger.Level.WARNING, warning(choice.reason()));
        }
        return driver;
    }

    private static String warning(String reason) {
        return "SIMULATED GPU: no GPU is used, since no driver works (" + reason + "). To simulate without this"
                + " warning set " + Setting.DRIVER.key() + "=simulated; to make it an error set " + Setting.DRIVER.key()
                + "=cuda.";
    }

    /// Chooses the driver that the setting `cistern.driver` names. If the setting is `auto` or missing, this
    /// chooses the available driver with the highest priority. However, if a driver of higher priority was
    /// configured wrongly, for example by `cistern.cuda.library`, this throws instead of skipping it.
    ///
    /// @throws IllegalArgumentException if the setting names a driver that does not exist
    /// @throws IllegalStateException if no driver can be used, if the driver that the setting names can't be
    ///     used, if a driver was configured wrongly, or if the real driver's provider was not found. The message
    ///     gives the reasons and what to do about them
    public static DriverChoice choose() {
        return choose(providers(), Settings.ofProcess());
    }

    static DriverChoice choose(List<CudaDriverProvider> providers, Settings settings) {
        Optional<Settings.Value> set = settings.get(Setting.DRIVER);
        if (set.isPresent() && !set.get().text().equals(AUTO)) {
            return named(set.get(), providers);
        }
        if (find("cuda", providers).isEmpty()) {
            throw new IllegalStateException(notFound("cuda"));
        }
        return best(providers);
    }

    private static DriverChoice named(Settings.Value set, List<CudaDriverProvider> providers) {
        Optional<CudaDriverProvider> provider = find(set.text(), providers);
        if (provider.isEmpty()) {
            throw new IllegalSettingException(set, notFound(set.text()));
        }
        Optional<String> reason = provider.get().unavailableBecause();
        if (reason.isPresent()) {
            throw new IllegalStateException(
                    set.source() + ": the driver " + set.text() + " can't be used: " + reason.get());
        }
        return new DriverChoice(provider.get(), true, set.source());
    }

    private static Optional<CudaDriverProvider> find(String name, List<CudaDriverProvider> providers) {
        return providers.stream().filter(each -> each.name().equals(name)).findFirst();
    }

    private static DriverChoice best(List<CudaDriverProvider> providers) {
        List<String> reasons = new ArrayList<>();
        for (CudaDriverProvider provider : providers) {
            Optional<String> reason = provider.unavailableBecause();
            if (reason.isEmpty()) {
                return new DriverChoice(provider, false, String.join("; ", reasons));
            }
            requireNotMisconfigured(provider);
            reasons.add(provider.name() + ": " + reason.get());
        }
        throw new IllegalStateException("no CUDA driver can be used: " + String.join("; ", reasons)
                + "; to run without a GPU, add cistern-simulated-gpu");
    }

    private static void requireNotMisconfigured(CudaDriverProvider provider) {
        Optional<String> mistake = provider.misconfiguredBecause();
        if (mistake.isPresent()) {
            throw new IllegalStateException("the driver " + provider.name() + " can't be used: " + mistake.get()
                    + "; to run without a GPU, set " + Setting.DRIVER.key() + "=simulated");
        }
    }

    /// Returns why no driver of that name was found, and what to do about it: its JAR is missing, or a fat JAR has its
    /// class but has lost its entry in `META-INF/services`.
    private static String notFound(String name) {
        String className = CLASS_NAMES.get(name);
        if (className == null) {
            return "there is no driver '" + name + "'; valid are auto, cuda, simulated and the names of other drivers"
                    + " on the class path";
        }
        if (!isHere(className)) {
            return "there is no driver '" + name + "': add "
                    + (name.equals("cuda") ? "cistern-cuda-driver" : "cistern-simulated-gpu")
                    + " to the class path or module path";
        }
        return "the class of the driver '" + name + "' is here, but META-INF/services/"
                + CudaDriverProvider.class.getName() + " does not name " + className
                + ". In a fat JAR the files in META-INF/services must be merged: with ServicesResourceTransformer in"
                + " Maven's shade plug-in, with mergeServiceFiles() in Gradle's shadow plug-in";
    }

    private static boolean isHere(String className) {
        try {
            Class.forName(className, false, CudaDrivers.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }
}
