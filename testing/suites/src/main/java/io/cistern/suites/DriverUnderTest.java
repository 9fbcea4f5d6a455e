package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import java.util.Comparator;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// The driver that the GPU suites run on: `cuda`, which is the default and fails without a GPU, `simulated`, or
/// `auto` for the best there is.
public final class DriverUnderTest {
    static final String PROPERTY = "cistern.testkit.driver";
    static final String AUTO = "auto";

    /// Kept open to the end of the process, so that the primary contexts need not be made again for every test.
    private static @Nullable CudaDriver keeper;

    private DriverUnderTest() {}

    /// Opens it; the caller closes it.
    ///
    /// @throws IllegalStateException if it can't be used here, with the reason
    public static synchronized CudaDriver open() {
        CudaDriverProvider provider = provider(System.getProperty(PROPERTY, "cuda"));
        CudaDriver driver = provider.open();
        if (!driver.simulated() && keeper == null) {
            keeper = driver;
            driver.devices().synchronize(0);
            return provider.open();
        }
        return driver;
    }

    /// Finds a driver.
    ///
    /// @throws IllegalStateException if there is none of that name, or it can't be used here
    static CudaDriverProvider provider(String name) {
        CudaDriverProvider found = ServiceLoader.load(CudaDriverProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(provider -> name.equals(AUTO)
                        ? provider.unavailableBecause().isEmpty()
                        : provider.name().equals(name))
                .max(Comparator.comparingInt(CudaDriverProvider::priority))
                .orElseThrow(() -> new IllegalStateException("no driver named " + name + " was found"));
        found.unavailableBecause().ifPresent(reason -> {
            throw new IllegalStateException("driver " + name + " can't be used here: " + reason);
        });
        return found;
    }
}
