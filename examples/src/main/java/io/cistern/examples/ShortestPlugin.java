package io.cistern.examples;

import io.cistern.cuda.CudaException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/// The shortest plug-in that passes the conformance suite, together with the line in
/// `META-INF/services/io.cistern.spi.AllocatorProvider` that names this class. A segment source provides the memory;
/// the framework does metering, limits and ownership.
public final class ShortestPlugin implements AllocatorProvider {
    @Override
    public int spiVersion() {
        return SPI_VERSION;
    }

    @Override
    public String name() {
        return "shortest";
    }

    @Override
    public DeviceAllocator open(AllocatorContext context) {
        RangeSource source = context.ranges("linear"); // cuMemAlloc and cuMemFree, which waits for the device
        Queue<Segment> freed = new ConcurrentLinkedQueue<>();
        return new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                giveBack(device);
                return source.acquire(byteSize, 256, device).address();
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                freed.add(new Segment(address, byteSize, device));
                giveBack(device);
            }

            @Override
            public long trim(int device, long keepBytes) {
                return giveBack(device);
            }

            @Override
            public void close() {
                for (int tries = 0; tries < 3; tries++) {
                    giveBack(0);
                }
            }

            // A free must not throw: if the driver refuses a segment, every later call tries again.
            private long giveBack(int device) {
                long returned = 0;
                for (Segment next = freed.poll(); next != null; next = freed.poll()) {
                    try {
                        source.release(next);
                        returned += next.device() == device ? next.byteSize() : 0;
                    } catch (CudaException refused) {
                        freed.add(next);
                        return returned;
                    }
                }
                return returned;
            }
        };
    }
}
