package io.cistern.testkit;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.RangeSource;
import io.cistern.spi.Segment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Segment sources with one mistake each, over `cuMemAlloc` and `cuMemCreate`: the conformance suite for sources must
/// find every one.
final class BrokenSources {
    private BrokenSources() {}

    /// Right in all that the other ranges get wrong.
    static class Sound implements RangeSource {
        final CudaDriver driver;

        Sound(CudaDriver driver) {
            this.driver = driver;
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            try {
                long address = driver.memory().allocate(device, byteSize + byteAlignment);
                return new Segment(Math.ceilDiv(address, byteAlignment) * byteAlignment, byteSize, device);
            } catch (CudaException failure) {
                throw new DeviceOutOfMemoryException(byteSize, device, "", failure);
            }
        }

        @Override
        public void release(Segment segment) {
            driver.memory().free(segment.device(), base(segment));
        }

        final long base(Segment segment) {
            return driver.memory().range(segment.device(), segment.address()).address();
        }
    }

    /// Ignores the alignment that it is asked for.
    static final class Misaligned extends Sound {
        Misaligned(CudaDriver driver) {
            super(driver);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            Segment segment = super.acquire(byteSize + 256, 256, device);
            return new Segment(segment.address() + 128, byteSize, device);
        }
    }

    /// Returns less than it was asked for.
    static final class Short extends Sound {
        Short(CudaDriver driver) {
            super(driver);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return super.acquire(byteSize - byteSize / 4, byteAlignment, device);
        }
    }

    /// Forgets what the driver refused to take back.
    static final class ForgetsTheRefused extends Sound {
        ForgetsTheRefused(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void release(Segment segment) {
            try {
                super.release(segment);
            } catch (CudaException refused) {
                // The mistake: the caller has to know.
            }
        }
    }

    /// Knows a segment by its object, although an equal one may be given back.
    static final class KnowsObjects extends Sound {
        private final Set<Integer> known = ConcurrentHashMap.newKeySet();

        KnowsObjects(CudaDriver driver) {
            super(driver);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            Segment segment = super.acquire(byteSize, byteAlignment, device);
            known.add(System.identityHashCode(segment));
            return segment;
        }

        @Override
        public void release(Segment segment) {
            if (known.remove(System.identityHashCode(segment))) {
                super.release(segment);
            }
        }
    }

    /// Takes everything from device 0.
    static final class KnowsOneDevice extends Sound {
        KnowsOneDevice(CudaDriver driver) {
            super(driver);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return new Segment(super.acquire(byteSize, byteAlignment, 0).address(), byteSize, device);
        }

        @Override
        public void release(Segment segment) {
            super.release(new Segment(segment.address(), segment.byteSize(), 0));
        }
    }

    /// Lets the driver's own error through.
    static final class HidesOutOfMemory extends Sound {
        HidesOutOfMemory(CudaDriver driver) {
            super(driver);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return new Segment(driver.memory().allocate(device, byteSize), byteSize, device);
        }
    }

    /// Ranges of another source, passed on rightly.
    static class Over implements RangeSource {
        private final RangeSource source;

        Over(RangeSource source) {
            this.source = source;
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return source.acquire(byteSize, byteAlignment, device);
        }

        @Override
        public void release(Segment segment) {
            source.release(segment);
        }
    }

    /// Releases half of each range.
    static final class ReleasesHalf extends Over {
        ReleasesHalf(RangeSource source) {
            super(source);
        }

        @Override
        public void release(Segment segment) {
            super.release(new Segment(segment.address(), segment.byteSize() / 2, segment.device()));
        }
    }

    /// Releases on device 0.
    static final class ReleasesOnDevice0 extends Over {
        ReleasesOnDevice0(RangeSource source) {
            super(source);
        }

        @Override
        public void release(Segment segment) {
            super.release(new Segment(segment.address(), segment.byteSize(), 0));
        }
    }

    /// Does not pass the alignment on.
    static final class AlignsTo256 extends Over {
        AlignsTo256(RangeSource source) {
            super(source);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            return super.acquire(byteSize, 256, device);
        }
    }

    /// Says that each range is twice as long as it is.
    static final class ClaimsTwice extends Over {
        ClaimsTwice(RangeSource source) {
            super(source);
        }

        @Override
        public Segment acquire(long byteSize, long byteAlignment, int device) {
            Segment range = super.acquire(byteSize, byteAlignment, device);
            return new Segment(range.address(), 2 * range.byteSize(), device);
        }

        @Override
        public void release(Segment segment) {
            super.release(new Segment(segment.address(), segment.byteSize() / 2, segment.device()));
        }
    }

    /// Right in all that the other pages get wrong.
    static class SoundPages implements PageSource {
        final CudaDriver driver;

        SoundPages(CudaDriver driver) {
            this.driver = driver;
        }

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
                throw new DeviceOutOfMemoryException(byteSize, device, "", failure);
            }
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            driver.virtualMemory().release(device, handle);
        }
    }

    /// Never releases.
    static final class KeepsHandles extends SoundPages {
        KeepsHandles(CudaDriver driver) {
            super(driver);
        }

        @Override
        public void release(long handle, long byteSize, int device) {}
    }

    /// Creates on device 0.
    static final class PagesOfOneDevice extends SoundPages {
        PagesOfOneDevice(CudaDriver driver) {
            super(driver);
        }

        @Override
        public long create(long byteSize, int device) {
            return super.create(byteSize, 0);
        }
    }

    /// Says at first that pages may be smaller than they may.
    static final class ChangesItsTraits extends SoundPages {
        private boolean created;

        ChangesItsTraits(CudaDriver driver) {
            super(driver);
        }

        @Override
        public PageTraits traits(int device) {
            long granularity = super.traits(device).granularity();
            return new PageTraits(created ? granularity : 2 * granularity, "device", "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            created = true;
            return super.create(byteSize, device);
        }
    }
}
