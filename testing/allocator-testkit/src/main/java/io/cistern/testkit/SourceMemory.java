package io.cistern.testkit;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.PageSource;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import java.util.EnumSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Memory from a source of either kind, at an address where it can be used. Any thread may call any method at any
/// time.
sealed interface SourceMemory {
    /// The alignment that every source must give.
    long ALIGNMENT = 256;

    static SourceMemory of(SegmentSource source, CudaDriver driver) {
        return switch (source) {
            case RangeSource ranges -> new Ranges(ranges);
            case PageSource pages -> new Pages(pages, driver, new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
        };
    }

    /// Obtains at least that many bytes, rounded as the source demands.
    Segment obtain(long byteSize, int device);

    /// Gives memory back. If the source does not take it, another call tries again.
    ///
    /// @return false if the source keeps it
    boolean giveBack(Segment segment);

    /// Whether memory that a source did not take back is still where it was.
    boolean keepsContents();

    /// The calls of the driver that only the source makes.
    Set<DriverCall> calls();

    /// Passes on what a source of ranges returns.
    ///
    /// @param source plain ranges
    record Ranges(RangeSource source) implements SourceMemory {
        @Override
        public Segment obtain(long byteSize, int device) {
            return source.acquire(byteSize, ALIGNMENT, device);
        }

        /// Gives back an equal segment, as allocators that keep only addresses do.
        @Override
        public boolean giveBack(Segment segment) {
            return source.tryRelease(new Segment(segment.address(), segment.byteSize(), segment.device()));
        }

        @Override
        public boolean keepsContents() {
            return true;
        }

        @Override
        public Set<DriverCall> calls() {
            return EnumSet.copyOf(FaultContractTests.memoryCalls());
        }
    }

    /// Maps handles, as an allocator does.
    ///
    /// @param mapped the handles by their mappings
    /// @param unmapped the handles that the source did not take back, by their former mappings
    record Pages(PageSource source, CudaDriver driver, Map<Segment, Long> mapped, Map<Segment, Long> unmapped)
            implements SourceMemory {
        @Override
        public Segment obtain(long byteSize, int device) {
            long granularity = source.traits(device).granularity();
            long rounded = Math.ceilDiv(byteSize, granularity) * granularity;
            long handle = source.create(rounded, device);
            Segment segment = map(handle, rounded, device);
            mapped.put(segment, handle);
            return segment;
        }

        /// Maps a handle at an address of its own.
        Segment map(long handle, long byteSize, int device) {
            long granularity = source.traits(device).granularity();
            long address = driver.virtualMemory().reserve(device, byteSize, granularity, 0);
            driver.virtualMemory().map(device, address, byteSize, handle);
            driver.virtualMemory()
                    .setAccess(device, address, byteSize, source.accessors(device), AccessRights.READ_WRITE);
            source.mapped(device, address, byteSize, handle);
            return new Segment(address, byteSize, device);
        }

        /// Takes a mapping away, unless the source needs it.
        ///
        /// @return false if it does
        boolean unmap(Segment segment) {
            if (!source.unmapping(segment.device(), segment.address(), segment.byteSize())) {
                return false;
            }
            driver.virtualMemory().unmap(segment.device(), segment.address(), segment.byteSize());
            driver.virtualMemory().freeReservation(segment.device(), segment.address(), segment.byteSize());
            return true;
        }

        @Override
        public boolean giveBack(Segment segment) {
            Long handle = mapped.remove(segment); // first: unmapped addresses may be another thread's at once
            if (handle == null) {
                release(Objects.requireNonNull(unmapped.remove(segment)), segment);
            } else if (unmap(segment)) {
                release(handle, segment);
            } else {
                mapped.put(segment, handle);
                return false;
            }
            return true;
        }

        private void release(Long handle, Segment former) {
            try {
                source.release(handle, former.byteSize(), former.device());
            } catch (RuntimeException refused) {
                unmapped.put(former, handle);
                throw refused;
            }
        }

        @Override
        public boolean keepsContents() {
            return false;
        }

        @Override
        public Set<DriverCall> calls() {
            return EnumSet.of(DriverCall.MEM_CREATE, DriverCall.MEM_RELEASE);
        }
    }
}
