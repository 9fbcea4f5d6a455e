package io.cistern.internal.registry;

import io.cistern.cuda.MemoryLocation;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import java.util.List;
import java.util.Optional;

/// Segment sources that leave the reserve of a device alone.
final class GuardedSource {
    private GuardedSource() {}

    /// Returns a source of the same memory that refuses what would come out of a reserve.
    static SegmentSource of(SegmentSource source, DeviceReserves reserves) {
        return switch (source) {
            case RangeSource ranges -> new Ranges(ranges, reserves);
            case PageSource pages -> new Pages(pages, reserves);
        };
    }

    private record Ranges(RangeSource source, DeviceReserves reserves) implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            reserves.require(byteSize, device);
            return source.acquire(byteSize, byteAlignment, device);
        }

        @Override
        public void release(Segment segment) {
            source.release(segment);
        }

        @Override
        public boolean tryRelease(Segment segment) {
            return source.tryRelease(segment);
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return source.extension(type);
        }

        @Override
        public void close() {
            source.close();
        }
    }

    private record Pages(PageSource source, DeviceReserves reserves) implements PageSource {
        @Override
        public PageTraits traits(int device) {
            return source.traits(device);
        }

        @Override
        public long create(long byteSize, int device) {
            if (source.traits(device).location().equals("device")) {
                reserves.require(byteSize, device);
            }
            return source.create(byteSize, device);
        }

        @Override
        public List<MemoryLocation> accessors(int device) {
            return source.accessors(device);
        }

        @Override
        public void mapped(int device, long address, long byteSize, long handle) {
            source.mapped(device, address, byteSize, handle);
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            return source.unmapping(device, address, byteSize);
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            source.release(handle, byteSize, device);
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return source.extension(type);
        }

        @Override
        public void close() {
            source.close();
        }
    }
}
