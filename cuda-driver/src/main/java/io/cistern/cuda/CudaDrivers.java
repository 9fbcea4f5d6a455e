package io.cistern.cuda;

import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.AtomicBoolean;

/// Finds the drivers that this program can use, by [ServiceLoader]. Any thread may call.
public final class CudaDrivers {
    private static final String AUTO = "auto";
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private CudaDrivers() {}

    /// Returns every provider found, the highest priority first.
    ///
    /// @throws java.util.ServiceConfigurationError if a declared provider can't be instantiated
    public static List<CudaDriverProvider> providers() {
        List<CudaDriverProvider> found = new ArrayList<>();
        for (CudaDriverProvider provider : ServiceLoader.load(CudaDriverProvider.class)) {
            found.add(provider);
        }
        found.sort(CudaDrivers::byPriority);
        return List.copyOf(found);
    }

    private static int byPriority(CudaDriverProvider one, CudaDriverProvider other) {
        int highestFirst = Integer.compare(other.priority(), one.priority());
        return highestFirst != 0 ? highestFirst : one.name().compareTo(other.name());
    }

    /// Opens the driver that [#choose()] chooses; the caller closes it. If that driver is a simulation that no
    /// setting asked for, this logs a warning with the reason, but only once in the life of the JVM.
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
    /// configured wrongly, for example by `cistern.cuda.library`, this throws instead of passing over it.
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
            throw new IllegalStateException(DriverServiceFile.notFound("cuda"));
        }
        return best(providers);
    }

    private static DriverChoice named(Settings.Value set, List<CudaDriverProvider> providers) {
        Optional<CudaDriverProvider> provider = find(set.text(), providers);
        if (provider.isEmpty()) {
            throw new IllegalSettingException(set, DriverServiceFile.notFound(set.text()));
        }
        Optional<String> reason = provider.get().unavailableBecause();
        if (reason.isPresent()) {
            throw new IllegalStateException(
                    set.source() + ": the driver " + set.text() + " can't be used: " + reason.get());
        }
        return new DriverChoice(provider.get(), true, set.source());
    }

    private static Optional<CudaDriverProvider> find(String name, List<CudaDriverProvider> providers) {
        for (CudaDriverProvider provider : providers) {
            if (provider.name().equals(name)) {
                return Optional.of(provider);
            }
        }
        return Optional.empty();
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
}
