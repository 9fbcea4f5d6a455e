package io.cistern.nccl;

import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Provides the segment source `nccl`: memory from `ncclMemAlloc`. The source has no options. [Nccl] describes
/// where libnccl is searched for.
public final class NcclSourceProvider implements SegmentSourceProvider {
    /// Creates the provider, for [java.util.ServiceLoader].
    public NcclSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "nccl";
    }

    /// Returns no, with the reason, if libnccl is missing or older than 2.19.1.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        return NcclApis.availability(environment.simulated());
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        CudaDriver driver = driver(context);
        return new NcclSource(NcclApis.of(driver), driver);
    }

    static CudaDriver driver(AllocatorContext context) {
        return context.extension(CudaDriver.class)
                .orElseThrow(() -> new ConfigurationException("nccl needs the driver, which this environment hides"));
    }
}
