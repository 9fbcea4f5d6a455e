package io.cistern.caching;

import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.internal.order.EventOrder;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongPredicate;

/// An environment over a simulated GPU: pages from its driver, fences as its events.
public final class GpuContext extends OneDeviceContext {
    final SimulatedGpu gpu;
    long movedBytes;
    /// Which addresses somebody needs mapped.
    LongPredicate needed = _ -> false;
    /// The stream of each live block.
    final Map<Long, Long> live = new LinkedHashMap<>();

    GpuContext(SimulatedGpu gpu) {
        this.gpu = gpu;
    }

    CachingAllocator open(PageReuse reuse, boolean stableMapping) {
        return open(PageFit.TIGHT, reuse, stableMapping);
    }

    CachingAllocator open(PageFit fit, PageReuse reuse, boolean stableMapping) {
        PagePolicy pages = new PagePolicy(0, fit, reuse, stableMapping, 0);
        return new CachingAllocator(this, TestContext.options(pages, false));
    }

    long allocate(CachingAllocator caching, long byteSize, long stream) {
        long address = caching.allocate(byteSize, 0, stream);
        live.put(address, stream);
        return address;
    }

    void free(CachingAllocator caching, long address, long stream) {
        live.remove(address);
        caching.free(address, 0, 0, stream);
    }

    /// The byte at an address, after all work.
    byte read(long address, long stream) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(1);
            gpu.copies().toHost(0, host, address, 1, stream);
            gpu.devices().synchronize(0);
            return host.get(ValueLayout.JAVA_BYTE, 0);
        }
    }

    @Override
    public void segmentAcquired(int device, long address, long byteSize) {}

    @Override
    public void segmentReleased(int device, long address, long byteSize) {}

    @Override
    public void pageMoved(int device, long formerAddress, long address, long byteSize) {
        movedBytes += byteSize;
    }

    @Override
    public SegmentSource segments(String spec) {
        return new GpuPages(gpu, address -> needed.test(address));
    }

    @Override
    public StreamOrder streams() {
        return new EventOrder(gpu, 0);
    }

    @Override
    CudaDriver driver() {
        return gpu;
    }

    public record GpuPages(CudaDriver gpu, LongPredicate needed) implements PageSource {
        public GpuPages(CudaDriver gpu) {
            this(gpu, _ -> false);
        }

        @Override
        public boolean unmapping(int device, long address, long byteSize) {
            return !needed.test(address);
        }

        @Override
        public PageTraits traits(int device) {
            return new PageTraits(2 << 20, "device", "none", false);
        }

        @Override
        public long create(long byteSize, int device) {
            return gpu.virtualMemory().create(byteSize, PhysicalMemory.onDevice(device));
        }

        @Override
        public void release(long handle, long byteSize, int device) {
            gpu.virtualMemory().release(device, handle);
        }
    }
}
