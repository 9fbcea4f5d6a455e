package io.cistern.caching;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyList;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.growth.SegmentGrowth;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.heap.AddressRangeMap;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.options.CheckLevel;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.Segment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import java.util.concurrent.atomic.AtomicLong;

/// An environment of one device whose memory source and whose streams the test holds in its hands.
public final class TestContext extends OneDeviceContext {
    /// The size of all pages of large blocks, so that tests can count them.

    static final long TOTAL_BYTES = 1L << 36;

    final TestOrder order = new TestOrder();
    final Devices devices = mock(Devices.class);
    private final CudaDriver driver = mock(CudaDriver.class, withSettings().stubOnly());
    private final SegmentSource source;
    private final AtomicLong announced = new AtomicLong();

    TestContext(SegmentSource source) {
        this.source = source;
        VirtualMemory memory = mock(VirtualMemory.class, withSettings().stubOnly());
        TestAddresses addresses = new TestAddresses();
        when(memory.reserve(anyInt(), anyLong(), anyLong(), anyLong()))
                .thenAnswer(call -> addresses.reserve(call.getArgument(1)));
        doAnswer(call -> {
                    addresses.free(call.getArgument(1), call.getArgument(2));
                    return null;
                })
                .when(memory)
                .freeReservation(anyInt(), anyLong(), anyLong());
        doThrow(new AssertionError("a range of 0 bytes"))
                .when(memory)
                .setAccess(anyInt(), anyLong(), eq(0L), anyList(), any());
        when(devices.totalBytes(0)).thenReturn(TOTAL_BYTES);
        when(driver.virtualMemory()).thenReturn(memory);
        when(driver.devices()).thenReturn(devices);
        LinearMemory linear = mock(LinearMemory.class, withSettings().stubOnly());
        when(linear.freeBytes(0)).thenReturn(TOTAL_BYTES);
        when(driver.memory()).thenReturn(linear);
    }

    static CachingAllocator caching(SegmentSource source) {
        return new TestContext(source).open();
    }

    CachingAllocator open() {
        return open(true);
    }

    /// Without, every request sees what the shards do.
    CachingAllocator open(boolean threadCaches) {
        PagePolicy pages = new PagePolicy(0, PageFit.USUAL, PageReuse.WAIT, false, 0);
        return open(options(pages, threadCaches));
    }

    /// The default of every option, over the source of a context.
    static CachingOptions options(PagePolicy pages, boolean threadCaches) {
        return new CachingOptions(
                "test",
                null,
                null,
                pages,
                CachingOptions.USUAL_ALIGNMENT,
                true,
                new ReserveLimit(Long.MAX_VALUE, 1, false),
                0,
                threadCaches ? CachingOptions.USUAL_THREAD_CACHE_BYTES : 0,
                CheckLevel.OFF,
                true);
    }

    CachingAllocator open(CachingOptions options) {
        return new CachingAllocator(this, options);
    }

    /// A segment of a shard of its own.
    public static AddressRange segment(long address, long byteSize, boolean small, AddressRangeMap ranges) {
        TestRanges source = new TestRanges(0);
        DeviceCounters counters = counters(source);
        SegmentGrowth maker = new SegmentGrowth(
                source,
                mock(VirtualMemory.class),
                counters,
                ranges,
                options(PagePolicy.USUAL, true).segments(),
                TOTAL_BYTES,
                new Fences(0, mock(CudaDriver.class), new TestOrder(), counters));
        return new PlainSegment(maker, shard(0, small), new Segment(address, byteSize, 0), address, byteSize);
    }

    /// What a cache holds, told to nobody who looks.
    public static DeviceCounters counters() {
        return counters(new TestRanges(0));
    }

    private static DeviceCounters counters(TestRanges source) {
        return new DeviceCounters(0, new TestContext(source));
    }

    /// The timeline of a stream that begins with the clock.
    public static StreamTimeline timeline(long stream) {
        return new StreamTimeline(stream, 0);
    }

    /// A shard that belongs to no cache.
    static Shard shard(long stream, boolean small) {
        return new Shard(timeline(stream), small, SplitPolicy.ANY, new AtomicLong(), counters());
    }

    /// Bytes that the allocator said it has.
    long announcedBytes() {
        return announced.get();
    }

    @Override
    public void segmentAcquired(int device, long address, long byteSize) {
        announced.addAndGet(byteSize);
    }

    @Override
    public void segmentReleased(int device, long address, long byteSize) {
        announced.addAndGet(-byteSize);
    }

    @Override
    public SegmentSource segments(String spec) {
        return source;
    }

    @Override
    public StreamOrder streams() {
        return order;
    }

    @Override
    CudaDriver driver() {
        return driver;
    }
}
