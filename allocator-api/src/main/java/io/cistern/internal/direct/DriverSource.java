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
import io.cistern.spi.MemorySharing;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Provides a segment source that consists only of driver calls.
public abstract sealed class DriverSource implements SegmentSourceProvider {
    private final String name;

    private DriverSource(String name) {
        this.name = name;
    }

    @Override
    public final int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final SegmentSource open(AllocatorContext context) {
        return open(context.extension(CudaDriver.class).orElseThrow());
    }

    abstract SegmentSource open(CudaDriver driver);

    /// Provides the source `linear`: plain ranges from `cuMemAlloc`.
    public static final class Linear extends DriverSource {
        /// For the service loader.
        public Linear() {
            super("linear");
        }

        @Override
        SegmentSource open(CudaDriver driver) {
            return new DriverRanges(driver, name(), "cuMemAlloc", true, driver.memory()::allocate);
        }
    }

    /// Provides the source `managed`: ranges from `cuMemAllocManaged`. The host and all devices can access
    /// them, and together they can exceed a device's memory.
    public static final class Managed extends DriverSource {
        /// For the service loader.
        public Managed() {
            super("managed");
        }

        /// Reports managed memory as unavailable, with the reason, if a device and the host can't access it
        /// concurrently.
        @Override
        public Availability availability(DeviceEnvironment environment) {
            return environment.onAll(environment::managedMemory);
        }

        @Override
        SegmentSource open(CudaDriver driver) {
            return new ManagedRanges(
                    new DriverRanges(driver, name(), "cuMemAllocManaged", false, driver.unifiedMemory()::allocate));
        }
    }

    /// Managed memory is open to all devices from the start.
    private record ManagedRanges(DriverRanges ranges) implements RangeSource, MemorySharing {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return ranges.acquire(byteSize, byteAlignment, device);
        }

        @Override
        public void release(Segment segment) {
            ranges.release(segment);
        }

        @Override
        public Availability grant(int device, int peer) {
            return Availability.yes();
        }
    }

    /// Provides the source `pages`: physical memory of the device from `cuMemCreate`, only for this process.
    public static final class Pages extends DriverSource {
        /// For the service loader.
        public Pages() {
            super("pages");
        }

        @Override
        public Availability availability(DeviceEnvironment environment) {
            return environment.onAll(environment::virtualMemory);
        }

        @Override
        SegmentSource open(CudaDriver driver) {
            return new DevicePages(driver);
        }
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
