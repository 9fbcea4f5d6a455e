package io.cistern.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/// The drivers that this program can reach, found by [ServiceLoader]. Any thread may call.
public final class CudaDrivers {
    private CudaDrivers() {}

    /// Every provider found, the highest priority first.
    ///
    /// @throws java.util.ServiceConfigurationError if one is declared but can't be made
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

    /// Opens the driver of the highest priority that is available; the caller closes it.
    ///
    /// @throws IllegalStateException if none is, with each one's reason
    /// @throws CudaException if the chosen driver refuses
    public static CudaDriver openBest() {
        return openBest(providers());
    }

    static CudaDriver openBest(List<CudaDriverProvider> providers) {
        List<String> reasons = new ArrayList<>();
        for (CudaDriverProvider provider : providers) {
            Optional<String> reason = provider.unavailableBecause();
            if (reason.isEmpty()) {
                return provider.open();
            }
            reasons.add(provider.name() + ": " + reason.get());
        }
        throw new IllegalStateException((reasons.isEmpty()
                        ? "no CUDA driver: no CudaDriverProvider on the class path or module path"
                        : "no CUDA driver can be used: " + String.join("; ", reasons))
                + "; to do without a GPU, add simulated-gpu");
    }
}
