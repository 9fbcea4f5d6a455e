package io.cistern.async;

import io.cistern.ConfigurationException;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;

/// Provides `async`: `cuMemAllocFromPoolAsync` on a pool of its own for each device.
///
/// Option `release_threshold`: the bytes that a pool keeps over a synchronisation; `keep_all` (the default),
/// `zero`, a number of bytes (`2GiB`), a share of the device (`0.3`), or `adaptive`: what the program will want
/// again, found while it runs.
public final class AsyncProvider implements AllocatorProvider {
    /// For [java.util.ServiceLoader].
    public AsyncProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "async";
    }

    @Override
    public int priority() {
        return 50;
    }

    /// No, with the reason, if a device has no pools.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        for (int device = 0; device < environment.deviceCount(); device++) {
            Availability pools = environment.memoryPools(device);
            if (!pools.available()) {
                return pools;
            }
        }
        return Availability.yes();
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("async needs the driver, which this environment hides"));
        return new AsyncAllocator(driver, context.devices().deviceCount(), ReleaseThreshold.read(context.options()));
    }
}
