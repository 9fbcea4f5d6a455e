package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;

/// Provides the source `managed`: ranges from `cuMemAllocManaged`. The host and all devices reach them, and
/// together they may be larger than a device.
public final class ManagedSourceProvider implements SegmentSourceProvider {
    /// For the service loader.
    public ManagedSourceProvider() {}

    @Override
    public int spiVersion() {
        return AllocatorProvider.SPI_VERSION;
    }

    @Override
    public String name() {
        return "managed";
    }

    /// Answers no, with the reason, if a device and the host can't use such memory at the same time.
    @Override
    public Availability availability(DeviceEnvironment environment) {
        for (int device = 0; device < environment.deviceCount(); device++) {
            Availability availability = environment.managedMemory(device);
            if (!availability.available()) {
                return availability;
            }
        }
        return Availability.yes();
    }

    @Override
    public SegmentSource open(AllocatorContext context) {
        CudaDriver driver = context.extension(CudaDriver.class).orElseThrow();
        return new ManagedRanges(
                new DriverRanges(driver, name(), "cuMemAllocManaged", false, driver.unifiedMemory()::allocate));
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
}
