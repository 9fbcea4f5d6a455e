package io.cistern.caching.internal.page;

import io.cistern.caching.options.CachingOption;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import java.io.Serial;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/// Limits the bytes that a source gives for one device. Bytes are taken before the source is asked; they are
/// returned if it refuses or when it takes the memory back. `taken = obtained + being requested ≤ cap`.
public final class ReserveCap {
    private final int device;
    private final long capBytes;
    private final CachingOption<?> option;
    private final AtomicLong taken = new AtomicLong();

    /// @param option the option that sets the cap
    public ReserveCap(int device, long capBytes, CachingOption<?> option) {
        this.device = device;
        this.capBytes = capBytes;
        this.option = option;
    }

    /// Returns a source that refuses above the cap. The opener of the original source still closes it.
    public SegmentSource of(SegmentSource source) {
        return switch (source) {
            case PageSource pages -> new Pages(pages, this);
            case RangeSource ranges -> new Ranges(ranges, this);
        };
    }

    /// Takes bytes before the source is asked.
    ///
    /// @throws DeviceOutOfMemoryException if they would exceed the cap; its cause is a [Reached]
    private void take(long byteSize) {
        long before = taken.getAndAdd(byteSize);
        if (byteSize > capBytes - before) {
            taken.addAndGet(-byteSize);
            throw new DeviceOutOfMemoryException(
                    byteSize,
                    device,
                    ByteSizes.exact(before) + " are reserved of the " + ByteSizes.exact(capBytes) + " that " + option
                            + " allows: raise it",
                    new Reached(option));
        }
    }

    /// Returns bytes that were released or refused; negative if the source gave more than was requested.
    private void returned(long byteSize) {
        taken.addAndGet(-byteSize);
    }

    /// Whether a cap caused the failure, at any depth, so that the driver was not asked.
    public static boolean isReached(Throwable failure) {
        Throwable cause = failure;
        while (cause != null && !(cause instanceof Reached)) {
            cause = cause.getCause();
        }
        return cause != null;
    }

    /// Distinguishes a reached cap from a driver that is out of memory.
    private static final class Reached extends RuntimeException {
        @Serial
        private static final long serialVersionUID = 1L;

        Reached(CachingOption<?> option) {
            super(option.key(), null, false, false);
        }
    }

    private record Pages(PageSource source, ReserveCap cap) implements PageSource {
        @Override
        public PageTraits traits(int device) {
            return source.traits(device);
        }

        @Override
        public long create(long byteSize, int device) {
            cap.take(byteSize);
            try {
                return source.create(byteSize, device);
            } catch (RuntimeException | Error refusal) {
                cap.returned(byteSize);
                throw refusal;
            }
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
            cap.returned(byteSize);
        }
    }

    private record Ranges(RangeSource source, ReserveCap cap) implements RangeSource {
        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            cap.take(byteSize);
            long obtained = 0;
            try {
                Segment segment = source.acquire(byteSize, byteAlignment, device);
                obtained = segment.byteSize();
                return segment;
            } finally {
                cap.returned(byteSize - obtained);
            }
        }

        @Override
        public void release(Segment segment) {
            source.release(segment);
            cap.returned(segment.byteSize());
        }

        @Override
        public boolean tryRelease(Segment segment) {
            boolean released = source.tryRelease(segment);
            cap.returned(released ? segment.byteSize() : 0);
            return released;
        }
    }
}
