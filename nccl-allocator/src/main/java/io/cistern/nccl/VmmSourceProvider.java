package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.nccl.internal.segment.VmmOptions;
import io.cistern.nccl.internal.segment.VmmSource;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.options.SpecOption;
import java.util.List;

/// Provides the segment source `vmm`: physical memory from `cuMemCreate`. All devices that can reach this
/// memory may access it, and it can be [registered][Communicator#register] with NCCL. The allocator `caching`
/// takes it page by page or, with `expandable_segments=false`, in plain segments.
public final class VmmSourceProvider implements SegmentSourceProvider {
    /// Creates the provider, for [java.util.ServiceLoader].
    public VmmSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "vmm";
    }

    @Override
    public List<SpecOption<?>> options() {
        return VmmOptions.ALL;
    }

    /// Returns no, with the reason, if a device has no virtual memory management.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return environment.onAll(environment::virtualMemory);
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("vmm needs the driver, which this environment hides"));
        VmmOptions options = VmmOptions.read(context.options());
        options.requireSupport(driver.capabilities());
        options.requireRoom(context.devices());
        return new VmmSource(driver, options, context.devices().deviceCount());
    }
}
