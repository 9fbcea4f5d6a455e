package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import java.util.List;

/// Provides the segment source `driver_pool`: plain ranges from the driver's pools, with the options of `async`
/// except `per_stream`. With it, an allocator that splits ranges can build on a pool with a maximum size,
/// on a pool of host memory, or on a pool that other libraries also use. Memory that the allocator releases
/// goes back to the device, unless `release_threshold` keeps it.
public final class DriverPoolSourceProvider implements SegmentSourceProvider {
    static final String NAME = "driver_pool";

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public DriverPoolSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<AsyncOption<?>> options() {
        return AsyncOption.ALL.stream()
                .filter(option -> option != AsyncOption.PER_STREAM)
                .toList();
    }

    /// Returns no, with the reason, if a device has no pools.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return environment.onAll(environment::memoryPools);
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        CudaDriver driver = AsyncProvider.driver(context);
        AsyncOptions options = AsyncOptions.read(context.options(), 0).requireSupport(driver);
        if (options.perStream()) {
            throw new ConfigurationException(
                    NAME + ": per_stream=true is invalid, since a range is for all streams; valid: per_stream=false");
        }
        if (options.adaptive()) {
            throw new ConfigurationException(NAME + ": release_threshold=adaptive is invalid, since the allocator"
                    + " above keeps the ranges; valid: zero, keep_all, bytes, a share of the device");
        }
        int deviceCount = context.devices().deviceCount();
        return new DriverPoolSource(
                driver,
                new AsyncAllocator(
                        driver, deviceCount, options, context.streams(), AsyncProvider.reserves(context, options)),
                deviceCount);
    }
}
