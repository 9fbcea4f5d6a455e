package io.cistern.async;

import io.cistern.ConfigurationException;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorOptions;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;

/// Provides `async`: `cuMemAllocFromPoolAsync` on a pool of its own for each device.
///
/// Option `release_threshold`: the bytes that a pool keeps over a synchronisation; `keep_all` (the default),
/// `zero`, or a number of bytes.
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
        return new AsyncAllocator(driver, context.devices().deviceCount(), releaseThreshold(context.options()));
    }

    private static long releaseThreshold(AllocatorOptions options) {
        return switch (options.text("release_threshold").orElse("keep_all")) {
            case "keep_all" -> Long.MAX_VALUE;
            case "zero" -> 0;
            default -> options.bytes("release_threshold").orElseThrow();
        };
    }
}
