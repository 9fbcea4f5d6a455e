package io.cistern.suites;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import java.util.Comparator;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// Opens the driver on which the GPU suites run: `cuda`, the default, which fails without a GPU; `simulated`;
/// or `auto`, the best available one.
public final class DriverUnderTest {
    static final String PROPERTY = "cistern.testkit.driver";
    static final String AUTO = "auto";

    /// Kept open until the process ends, so that tests need not create the primary contexts again.
    private static @Nullable CudaDriver keeper;

    private DriverUnderTest() {}

    /// Opens the driver. The caller closes it.
    ///
    /// @throws IllegalStateException if the driver can't be used here, with the reason
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

    /// Finds a driver by its name.
    ///
    /// @throws IllegalStateException if no driver has that name, or it can't be used here
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
