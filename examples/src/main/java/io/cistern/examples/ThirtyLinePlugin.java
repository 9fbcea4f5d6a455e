package io.cistern.examples;

import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;

/// The shortest plug-in, together with the line in `META-INF/services/io.cistern.spi.AllocatorProvider` that
/// names this class. A segment source provides the memory; the framework does metering, limits and ownership. One that
/// goes into use also keeps what the driver refuses to take back, since a free must not throw: see the plug-in
/// template.
public final class ThirtyLinePlugin implements AllocatorProvider {
    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "thirty-lines";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        RangeSource source = (RangeSource) context.segments("linear");
        return new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return source.acquire(byteSize, 256, device).address();
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                source.release(new Segment(address, byteSize, device));
            }
        };
    }
}
