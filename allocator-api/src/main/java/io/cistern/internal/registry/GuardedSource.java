package io.cistern.internal.registry;

import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.AllocatorContractException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.routing.OwnerTable;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Segment sources that respect the reserve of a device, and whose ranges are checked against the request:
/// no later code checks them before blocks are cut from them.
final class GuardedSource {
    private GuardedSource() {}

    /// Returns a source of the same memory that refuses requests that would cut into a reserve.
    ///
    /// @param name the source's name
    static SegmentSource of(String name, SegmentSource source, DeviceReserves reserves) {
        return switch (source) {
            case RangeSource ranges -> new Ranges(name, ranges, reserves);
            case PageSource pages -> new Pages(pages, reserves);
        };
    }

    private record Ranges(String name, RangeSource source, DeviceReserves reserves) implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            long free = reserves.require(byteSize, device);
            Segment segment = acquireSound(byteSize, byteAlignment, device);
            try {
                reserves.requireKept(free, byteSize, device);
                return segment;
            } catch (Throwable failure) {
                releaseAfter(failure, segment);
                throw failure;
            }
        }

        private Segment acquireSound(long byteSize, long byteAlignment, int device) {
            Segment segment = source.acquire(byteSize, byteAlignment, device);
            if (segment == null) {
                throw new AllocatorContractException("segment source " + name + " returned null for "
                        + ByteSizes.count(byteSize) + " on device " + device);
            }
            String fault = fault(segment, byteSize, byteAlignment, device);
            if (fault != null) {
                throw broken(segment, byteSize, device, fault);
            }
            return segment;
        }

        private static @Nullable String fault(Segment segment, long byteSize, long byteAlignment, int device) {
            long address = segment.address();
            if (address % byteAlignment != 0) {
                return "which is not a multiple of " + byteAlignment;
            }
            if (address <= 0 || address > (1L << OwnerTable.ADDRESS_BITS) - segment.byteSize()) {
                return "which is not between " + byteAlignment + " and 2^" + OwnerTable.ADDRESS_BITS;
            }
            if (segment.byteSize() < byteSize) {
                return "where only " + ByteSizes.count(segment.byteSize()) + " begin";
            }
            if (segment.device() != device) {
                return "which is a range on device " + segment.device();
            }
            return null;
        }

        private AllocatorContractException broken(Segment segment, long byteSize, int device, String fault) {
            var broken = new AllocatorContractException("segment source " + name + " returned 0x"
                    + Long.toHexString(segment.address()) + " for " + byteSize + " bytes on device " + device
                    + ", "
                    + fault);
            releaseAfter(broken, segment);
            return broken;
        }

        private void releaseAfter(Throwable failure, Segment segment) {
            try {
                source.release(segment);
            } catch (RuntimeException | Error second) {
                failure.addSuppressed(second);
            }
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
        public void abandoned(int device, long address, long byteSize) {
            source.abandoned(device, address, byteSize);
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
