package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;

/// Provides the allocator `direct`: every allocation is a `cuMemAlloc`, every free a `cuMemFree`.
public final class DirectProvider implements AllocatorProvider {
    /// For the service loader.
    public DirectProvider() {}

    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "direct";
    }

    /// Low, since this is the last resort: it works on every driver, but each free waits for the device.
    @Override
    public int priority() {
        return 10;
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        return new DirectAllocator(
                context.extension(CudaDriver.class).orElseThrow(),
                context.extension(DeviceReserves.class).orElse(null));
    }
}
