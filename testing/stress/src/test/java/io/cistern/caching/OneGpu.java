package io.cistern.caching;

import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.internal.base.SplitPolicy;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.growth.PlainSegment;
import io.cistern.caching.internal.heap.AddressRange;
import io.cistern.caching.internal.order.StreamTimeline;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.shard.Shard;
import io.cistern.caching.internal.shard.Shards;
import io.cistern.caching.options.CheckLevel;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.VirtualMemory;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.EventSink;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamOrder;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/// What the cache of one device needs of its surroundings, and no more: the model checker follows every object it
/// meets, and a simulated GPU has thousands. Pages and addresses never end, and all work has passed.
public final class OneGpu implements PageSource {
    private static final long BYTES = 1L << 36;

    private final CudaDriver driver =
            only(CudaDriver.class, Map.of("virtualMemory", virtualMemory(), "devices", devices(), "memory", memory()));
    private final AtomicLong reserved = new AtomicLong(1L << 40);
    private long handles;

    private VirtualMemory virtualMemory() {
        return (VirtualMemory) Proxy.newProxyInstance(
                VirtualMemory.class.getClassLoader(),
                new Class<?>[] {VirtualMemory.class},
                (_, method, arguments) ->
                        method.getName().equals("reserve") ? reserved.getAndAdd((long) arguments[1]) : null);
    }

    private static Devices devices() {
        return only(Devices.class, Map.of("count", 1, "totalBytes", BYTES));
    }

    private static LinearMemory memory() {
        return only(LinearMemory.class, Map.of("freeBytes", BYTES));
    }

    /// An allocator over it.
    public static CachingAllocator open() {
        OneGpu gpu = new OneGpu();
        AllocatorContext context = only(
                AllocatorContext.class,
                Map.of(
                        "devices", only(DeviceEnvironment.class, Map.of("deviceCount", 1, "totalBytes", BYTES)),
                        "streams", only(StreamOrder.class, Map.of("record", 1L, "passed", true)),
                        "events", only(EventSink.class, Map.of()),
                        "segments", gpu,
                        "extension",
                                (Function<Object, Object>)
                                        type -> type == CudaDriver.class ? Optional.of(gpu.driver) : Optional.empty()));
        CachingOptions options = new CachingOptions(
                "pages",
                null,
                null,
                PagePolicy.USUAL,
                CachingOptions.USUAL_ALIGNMENT,
                true,
                new ReserveLimit(Long.MAX_VALUE, 1, false),
                0,
                CachingOptions.USUAL_THREAD_CACHE_BYTES,
                CheckLevel.OFF,
                true);
        return new CachingAllocator(context, options);
    }

    /// A shard that belongs to no cache.
    public static Shard shard(long stream) {
        return new Shard(timeline(stream), true, SplitPolicy.ANY, new AtomicLong(), counters());
    }

    public static DeviceCounters counters() {
        return new DeviceCounters(0, new Told());
    }

    /// Events that nobody looks at.
    private static final class Told implements EventSink {
        @Override
        public void segmentAcquired(int device, long address, long byteSize) {}

        @Override
        public void segmentReleased(int device, long address, long byteSize) {}
    }

    public static StreamTimeline timeline(long stream) {
        return new StreamTimeline(stream, 0);
    }

    /// A table without shards.
    public static Shards shards() {
        return new Shards(SplitPolicy.ANY, new AtomicLong(), counters());
    }

    /// The shard of a stream in a table, made if there is none.
    public static Shard open(Shards table, StreamTimeline timeline) {
        return table.open(timeline, true, () -> null);
    }

    /// A segment that no memory lies behind.
    public static AddressRange segment(Shard shard, long address, long byteSize) {
        return new PlainSegment(null, shard, new Segment(address, byteSize, 0), address, byteSize);
    }

    @Override
    public PageTraits traits(int device) {
        return new PageTraits(2 << 20, "device", "none", false);
    }

    @Override
    public synchronized long create(long byteSize, int device) {
        return ++handles;
    }

    @Override
    public void release(long handle, long byteSize, int device) {}

    /// An object that knows some answers, one of them by its argument, and for the rest does nothing.
    @SuppressWarnings("unchecked") // of the functions above
    private static <T> T only(Class<T> type, Map<String, Object> answers) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (_, method, arguments) -> {
                    Object answer = answers.get(method.getName());
                    return answer instanceof Function<?, ?> byArgument
                            ? ((Function<Object, Object>) byArgument).apply(arguments[0])
                            : answer;
                }));
    }
}
