package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Provides the source `pages`: physical memory of the device from `cuMemCreate`, only for this process.
public final class PageSourceProvider implements SegmentSourceProvider {
    /// For the service loader.
    public PageSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "pages";
    }

    @Override
    public Availability availability(DeviceEnvironment environment) {
        for (int device = 0; device < environment.deviceCount(); device++) {
            Availability availability = environment.virtualMemory(device);
            if (!availability.available()) {
                return availability;
            }
        }
        return Availability.yes();
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        return new DevicePages(context.extension(CudaDriver.class).orElseThrow());
    }

    private record DevicePages(CudaDriver driver) implements PageSource {
        @Override
        public PageTraits traits(int device) {
            long granularity = driver.virtualMemory().granularity(PhysicalMemory.onDevice(device), false);
            return new PageTraits(granularity, "device", "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            try {
                return driver.virtualMemory().create(byteSize, PhysicalMemory.onDevice(device));
            } catch (CudaException failure) {
                if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                    long deviceBytes = driver.devices().totalBytes(device);
                    throw byteSize > deviceBytes
                            ? DeviceOutOfMemoryException.aboveDevice(byteSize, device, deviceBytes)
                            : new DeviceOutOfMemoryException(byteSize, device, "", failure);
                }
                throw failure;
            }
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            try {
                driver.virtualMemory().release(device, handle);
            } catch (CudaException failure) { // no helper: a release needs no Java heap
                if (!failure.result().endsContext()) {
                    throw failure;
                }
            }
        }
    }
}
