package io.cistern.simulated;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import java.util.Optional;

/// Provides the simulated GPU as a driver that is always available, with a lower priority than the real one.
public final class SimulatedDriverProvider implements CudaDriverProvider {
    /// Creates the provider, for [java.util.ServiceLoader].
    public SimulatedDriverProvider() {}

    @Override
    public String name() {
        return "simulated";
    }

    @Override
    public int priority() {
        return 0;
    }

    @Override
    public Optional<String> unavailableBecause() {
        return Optional.empty();
    }

    @Override
    public CudaDriver open() {
        return SimulatedGpu.builder().build();
    }
}
