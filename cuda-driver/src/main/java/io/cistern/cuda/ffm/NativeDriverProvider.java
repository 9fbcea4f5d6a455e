package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import java.util.Optional;

/// Provides the real driver: `libcuda.so.1`, or the library that the property `cistern.cuda.library` names.
public final class NativeDriverProvider implements CudaDriverProvider {
    /// Higher than the simulated GPU's.
    private static final int PRIORITY = 100;

    /// For [java.util.ServiceLoader].
    public NativeDriverProvider() {}

    @Override
    public String name() {
        return "cuda";
    }

    @Override
    public int priority() {
        return PRIORITY;
    }

    @Override
    public Optional<String> unavailableBecause() {
        return problem().map(UnavailableException::reason);
    }

    @Override
    public Optional<String> misconfiguredBecause() {
        return problem().filter(UnavailableException::isMisconfigured).map(UnavailableException::reason);
    }

    private static Optional<UnavailableException> problem() {
        try {
            Startup.of(DriverLibrary.load());
            return Optional.empty();
        } catch (UnavailableException e) {
            return Optional.of(e);
        } catch (RuntimeException | LinkageError e) {
            return Optional.of(new UnavailableException("the driver's library can't be called: " + e));
        }
    }

    @Override
    public CudaDriver open() {
        try {
            return new NativeDriver(Startup.of(DriverLibrary.load()));
        } catch (UnavailableException e) {
            throw new IllegalStateException(e.reason(), e);
        }
    }
}
