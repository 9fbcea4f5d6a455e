package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.GraphAllocator;
import java.util.List;

/// Provides `async`, the allocator over the driver's stream-ordered pools. [AsyncOption] lists its options.
public final class AsyncProvider implements AllocatorProvider {
    /// Creates the provider; [java.util.ServiceLoader] calls this.
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

    @Override
    public List<AsyncOption<?>> options() {
        return AsyncOption.ALL;
    }

    /// Returns no, with the reason, if a device has no pools.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return environment.onAll(environment::memoryPools);
    }

    @Override
    public boolean servesGraphs() {
        return true;
    }

    /// Checks the options but does not use them: the driver itself holds the memory of graphs.
    @Override
    public GraphAllocator openForGraphs(AllocatorContext context) {
        AsyncOptions.read(context.options(), Long.MAX_VALUE);
        return new GraphAllocations(driver(context));
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        CudaDriver driver = driver(context);
        AsyncOptions options =
                AsyncOptions.read(context.options(), Long.MAX_VALUE).requireSupport(driver);
        return new AsyncAllocator(
                driver, context.devices().deviceCount(), options, context.streams(), reserves(context, options));
    }

    /// Returns the memory of devices that pools leave to others; none if they don't take it from a device.
    static DeviceReserves reserves(AllocatorContext context, AsyncOptions options) {
        return context.extension(DeviceReserves.class)
                .filter(_ -> options.location().onDevice())
                .orElseGet(() ->
                        new DeviceReserves(driver(context), context.devices().deviceCount()));
    }

    static CudaDriver driver(AllocatorContext context) {
        return context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("async needs the driver, which this environment hides"));
    }
}
