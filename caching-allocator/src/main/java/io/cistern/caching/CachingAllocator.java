package io.cistern.caching;

import io.cistern.caching.internal.check.VerifiableAllocator;
import io.cistern.caching.internal.page.Page;
import io.cistern.caching.internal.page.PageTable;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.BlockHistory;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.StreamMemory;
import io.cistern.diagnostics.UnusableMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import io.cistern.internal.names.Known;
import io.cistern.internal.threads.ThreadTable;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.Availability;
import io.cistern.spi.EventSink;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.PageSource;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/// The caching allocator: one [DeviceCache] for each device that is used.
///
/// It has three tiers: [ThreadCache] for blocks that a thread keeps,
/// [Shard][io.cistern.caching.internal.shard.Shard] for blocks of a stream, [PageTable] for physical memory.
///
/// **Frees** are trusted: the framework has a record of every block and finds a second free, an unknown address
/// and a wrong size before it calls. If this class is called directly, it finds addresses outside its ranges at
/// once, and other errors when the block leaves the thread cache; for a size of 0 no thread cache is used. The
/// [checking levels][io.cistern.caching.options.CheckLevel] find more.
final class CachingAllocator implements VerifiableAllocator, MemoryStatistics, MemorySharing {
    /// Made in advance, so that closing needs no Java heap for it.
    private final Runnable closing = this::closeCaches;

    private final CudaDriver driver;
    private final StreamOrder streams;
    private final EventSink events;
    private final SegmentSource source;
    private final CachingOptions options;
    private final LongFunction<Optional<BlockHistory>> histories;
    private final AtomicReferenceArray<@Nullable DeviceCache> caches;

    /// Where threads find their thread caches: an array of this allocator, which saves one read on the way to a block.
    private final @Nullable ThreadCache[] threadCaches = new ThreadCache[ThreadTable.ENTRIES];

    private final MemoryReclaim.Choice reclaimChoice;
    private final CacheSleep sleep;

    /// Whether a use was ever recorded. Plain: a free of a block comes after all records of its uses.
    private boolean recordsUses;

    CachingAllocator(AllocatorContext context, CachingOptions options) {
        this(context, driver(context), context.events(), options, _ -> Optional.empty());
    }

    CachingAllocator(
            AllocatorContext context,
            CudaDriver driver,
            EventSink events,
            CachingOptions options,
            LongFunction<Optional<BlockHistory>> histories) {
        this.driver = driver;
        this.streams = context.streams();
        this.events = events;
        this.source = context.segments(options.source());
        this.options = options;
        this.histories = histories;
        this.sleep = new CacheSleep(
                options.growsByPages(source instanceof PageSource)
                        ? Availability.yes()
                        : Availability.no("its memory comes in whole segments, which lose their addresses with their"
                                + " memory: open it over a source of pages, without expandable_segments=false or"
                                + " splits=false"));
        this.caches = new AtomicReferenceArray<>(context.devices().deviceCount());
        for (int device = 0; device < caches.length(); device++) {
            options.requireServable(device, context.devices().totalBytes(device));
        }
        this.reclaimChoice = context.extension(MemoryReclaim.Choice.class)
                .orElse(new MemoryReclaim.Choice(EnumSet.allOf(ReclaimStep.class)));
    }

    static CudaDriver driver(AllocatorContext context) {
        return context.extension(CudaDriver.class)
                .orElseThrow(
                        () -> new ConfigurationException("caching needs the driver, which this environment hides"));
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        ThreadCache threadCache = findThreadCache(device);
        if (threadCache != null) {
            long address = threadCache.take(byteSize, stream);
            if (address != 0) {
                return address;
            }
        }
        return cache(device).allocate(threadCache, byteSize, stream);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        ThreadCache threadCache = findThreadCache(device);
        if (threadCache == null
                || (recordsUses && cache(device).shards.uses.mayContain(address))
                || !threadCache.keep(address, byteSize, stream)) {
            cache(device).refill.free(threadCache, address, byteSize, stream);
        }
    }

    @Override
    public Availability canLend() {
        return Availability.yes();
    }

    @Override
    public long tryAllocate(long byteSize, int device, long stream) {
        DeviceCache cache = caches.get(device);
        return cache == null ? 0 : cache.tryAllocate(byteSize, stream);
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        recordsUses = true;
        cache(device).shards.recordUse(address, stream);
        return true;
    }

    private synchronized DeviceCache openCache(int device) {
        DeviceCache cache = caches.get(device);
        if (cache == null) {
            DeviceCache opened = open(device, source);
            opened.growth.pageTable().ifPresent(table -> sleep.add(new PageSleep(driver, opened, table)));
            caches.set(device, opened);
            return opened;
        }
        return cache;
    }

    private DeviceCache open(int device, SegmentSource from) {
        return new DeviceCache(device, driver, streams, events, from, options, reclaimChoice, threadCaches);
    }

    @Override
    public List<StreamMemory> heldByStream(int device) {
        return used(device).map(DeviceCache::describe).orElse(List.of());
    }

    @Override
    public List<SegmentMemory> segments(int device) {
        return used(device).stream()
                .flatMap(cache -> cache.shards.all().stream())
                .flatMap(shard -> shard.segments().stream())
                .toList();
    }

    @Override
    public List<UnusableMemory> unusable(int device) {
        return used(device)
                .map(cache -> new UnusableSurvey(cache, whyInPieces()).list())
                .orElse(List.of());
    }

    private List<String> whyInPieces() {
        boolean byPages = options.growsByPages(source instanceof PageSource);
        return byPages ? options.pages().whyInPieces() : List.of(options.whyInSegments(source instanceof PageSource));
    }

    @Override
    public Optional<BlockHistory> history(long address) {
        return histories.apply(address);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        DeviceCache cache = caches.get(device);
        return OptionalLong.of(cache == null ? 0 : cache.counters.reservedBytes());
    }

    @Override
    public OptionalLong reservedPeakBytes(int device) {
        DeviceCache cache = caches.get(device);
        return OptionalLong.of(cache == null ? 0 : cache.counters.reservedPeakBytes());
    }

    /// Asks its source for abilities that this allocator lacks.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        if (type == MemorySleep.class) {
            return Optional.of(type.cast(sleep));
        }
        return type.isInstance(this) ? Optional.of(type.cast(this)) : source.extension(type);
    }

    /// {@inheritDoc}
    ///
    /// Returns the same names for a device that has not been used, which stays unused.
    @Override
    public Map<String, Long> statistics(int device) {
        DeviceCache cache = caches.get(device);
        return cache != null
                ? cache.statistics.map()
                : Known.orElse(() -> open(device, NoMemory.SOURCE).statistics.map(), Map.of());
    }

    @Override
    public void resetPeaks(int device) {
        used(device).ifPresent(cache -> cache.statistics.resetPeaks());
    }

    @Override
    public void resetTotals(int device) {
        used(device).ifPresent(cache -> cache.statistics.resetTotals());
    }

    private Optional<DeviceCache> used(int device) {
        return Optional.ofNullable(caches.get(device));
    }

    private void forEachUsed(Consumer<DeviceCache> action) {
        for (int device = 0; device < caches.length(); device++) {
            used(device).ifPresent(action);
        }
    }

    @Override
    public Availability grant(int device, int peer) {
        DeviceCache cache = cache(device);
        PageTable table = cache.growth.pageTable().orElse(null);
        if (table == null && source instanceof MemorySharing sharing) {
            return sharing.grant(device, peer);
        }
        if (table == null) {
            return Availability.no("caching over " + options.source() + " can't open its memory to device " + peer
                    + ": only the source could; open the pool over a source of pages");
        }
        sleep.exclude(() -> new PagePeers(cache.shards, table).grant(peer));
        return Availability.yes();
    }

    DeviceCache cache(int device) {
        DeviceCache cache = caches.get(device);
        return cache != null ? cache : openCache(device);
    }

    @Override
    public long trim(int device, long keepBytes) {
        DeviceCache cache = caches.get(device);
        return cache == null ? 0 : cache.reclaim.trim(keepBytes, false);
    }

    @Override
    public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
        DeviceCache cache = caches.get(device); // don't give an unused device a context
        return Optional.of(
                cache == null ? new TrimResult(0, OptionalLong.of(0), List.of()) : cache.reclaim.trim(keepBytes, mode));
    }

    @Override
    public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
        DeviceCache cache = caches.get(refusal.device());
        return OptionalLong.of(cache == null ? 0 : cache.reclaim.reclaim(step, refusal, stream));
    }

    @Override
    public Optional<CompactionResult> compact(int device, long byteSize) {
        return compaction(device, compaction -> compaction.compact(byteSize));
    }

    @Override
    public Optional<CompactionResult> planCompaction(int device) {
        return compaction(device, CacheCompaction::plan);
    }

    private Optional<CompactionResult> compaction(int device, Function<CacheCompaction, CompactionResult> compaction) {
        return Optional.of(used(device)
                .map(cache -> sleep.exclude(() -> compaction.apply(cache.compaction), CacheCompaction.BUSY))
                .orElseGet(() -> CompactionResult.nothing("caching has no memory on device " + device)));
    }

    @Override
    public void failed(DeviceOutOfMemoryException refusal) {
        used(refusal.device()).ifPresent(cache -> cache.reclaim.failed(refusal));
    }

    /// Pins the pages under a range of live blocks, for programs that captured its addresses. A plain segment
    /// needs no pin: it never moves, and goes back only when none of its blocks is live.
    void pin(int device, long address, long byteSize, Page.Pin reason) {
        used(device)
                .ifPresent(cache -> cache.growth.pageTable().ifPresent(table -> table.pin(address, byteSize, reason)));
    }

    void unpinAll(Page.Pin reason) {
        forEachUsed(cache -> cache.growth.pageTable().ifPresent(table -> table.unpinAll(reason)));
    }

    /// Like [#streamClosing], but the stream's memory stays.
    void streamEnded(int device, long stream) {
        DeviceCache cache = caches.get(device);
        if (cache != null) {
            cache.shards.streamEnded(stream);
        }
    }

    @Override
    public void streamClosing(int device, long stream) {
        DeviceCache cache = caches.get(device);
        if (cache != null) {
            cache.shards.streamClosing(stream);
        }
    }

    /// Closes the caches; tries again if the Java heap was full, since no caller closes an allocator twice.
    @Override
    public void close() {
        try {
            sleep.close(closing);
        } catch (OutOfMemoryError failure) {
            sleep.close(closing);
            throw failure;
        }
    }

    /// Closes the caches of all devices, even after one fails.
    private void closeCaches() {
        Failures failures = new Failures();
        forEachUsed(cache -> failures.gather(cache::close));
        failures.rethrow();
    }

    /// Returns the calling thread's thread cache; null if it has none yet, or none in the table.
    @Nullable
    ThreadCache findThreadCache(int device) {
        ThreadCache first = ThreadTable.find(threadCaches, device);
        return first != null ? first : ThreadTable.findSecond(threadCaches, device);
    }

    @Override
    public void checkInvariants() {
        forEachUsed(DeviceCache::checkInvariants);
    }
}
