package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Provides the source `linear`: plain ranges from `cuMemAlloc`.
public final class LinearSourceProvider implements SegmentSourceProvider {
    /// For the service loader.
    public LinearSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "linear";
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class).orElseThrow();
        return new DriverRanges(driver, name(), "cuMemAlloc", true, driver.memory()::allocate);
    }
}
