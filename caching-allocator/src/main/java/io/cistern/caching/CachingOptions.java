package io.cistern.caching;

import io.cistern.caching.internal.base.Rounding;
import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.base.SplitOptions;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.growth.SegmentPolicy;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.internal.thread.ThreadCache;
import io.cistern.caching.internal.thread.ThreadCacheLimit;
import io.cistern.caching.options.CachingOption;
import io.cistern.caching.options.CheckLevel;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceEnvironment;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The options of one `caching`, read and checked against each other.
///
/// @param source the spec of the segment source
/// @param growsByPages whether memory grows by pages; null where the source decides
/// @param asksForPages what of the spec needs a source of pages, if the spec chooses the source too; else null
/// @param pages the sizes of pages, and which of them move
/// @param largeSegmentBytes the size of a segment that large blocks share
/// @param alignment what all addresses are multiples of, a power of two
/// @param rounding the sizes of blocks, where thread caches do not choose them
/// @param splitOptions which blocks are cut
/// @param limit how much may be reserved
/// @param initialBytes how much is obtained with the first request of a device
/// @param threadCaches what threads keep of blocks that they freed
/// @param check how much is checked
/// @param givesBack whether idle memory may go back to the driver when there is no more; not that of graphs
record CachingOptions(
        String source,
        @Nullable Boolean growsByPages,
        @Nullable String asksForPages,
        PagePolicy pages,
        long largeSegmentBytes,
        long alignment,
        Rounding rounding,
        SplitOptions splitOptions,
        ReserveLimit limit,
        long initialBytes,
        ThreadCacheLimit threadCaches,
        CheckLevel check,
        boolean givesBack) {
    /// What every allocator promises.
    static final long USUAL_ALIGNMENT = 256;

    /// PyTorch's.
    static final long USUAL_LARGE_SEGMENT = 20L << 20;

    /// Handles larger than this save no calls worth speaking of.
    private static final long LARGEST_PAGE = 1L << 30;

    private static final int MIB_SHIFT = 20;

    /// Those that say something of pages alone; plain segments have none.
    private static final List<CachingOption<?>> OF_PAGES = List.of(
            CachingOption.PAGE_SIZE,
            CachingOption.FIT,
            CachingOption.REUSE,
            CachingOption.STABLE_MAPPING,
            CachingOption.COMPACTION_BYTES);

    /// Every option as it usually is.
    static CachingOptions usual(String source, PagePolicy pages, ThreadCacheLimit threadCaches) {
        return new CachingOptions(
                source,
                null,
                null,
                pages,
                USUAL_LARGE_SEGMENT,
                USUAL_ALIGNMENT,
                new Rounding(Sizes.GRANULE, null),
                new SplitOptions(true, 0, USUAL_LARGE_SEGMENT),
                ReserveLimit.NONE,
                0,
                threadCaches,
                CheckLevel.OFF,
                true);
    }

    /// Reads the options of a spec.
    ///
    /// @throws ConfigurationException for a value that is not legal, or two that contradict each other
    static CachingOptions read(AllocatorContext context) {
        return read(new OptionReader(context.options()), context.devices());
    }

    /// Reads them where a reader is there.
    ///
    /// @throws ConfigurationException as the other
    static CachingOptions read(OptionReader reader, DeviceEnvironment devices) {
        Boolean expandable = reader.value(CachingOption.EXPANDABLE_SEGMENTS);
        boolean splits = reader.value(CachingOption.SPLITS, true);
        checkPages(reader, expandable, splits);
        long large = readLargeSegment(reader);
        long alignment = readAlignment(reader);
        return new CachingOptions(
                reader.value(CachingOption.SOURCE, usualSource(devices, expandable)),
                splits ? expandable : Boolean.FALSE,
                readAsksForPages(reader, expandable),
                readPages(reader, large),
                large,
                alignment,
                new Rounding(Math.max(Sizes.GRANULE, alignment), reader.value(CachingOption.ROUNDUP_POWER2_DIVISIONS)),
                readSplitting(reader, splits, large),
                readLimit(reader),
                readInitialBytes(reader),
                readThreadCaches(reader),
                reader.value(CachingOption.CHECK, configuredLevel()),
                true);
    }

    /// How much is checked, as the settings say.
    ///
    /// @throws ConfigurationException if they name no level
    private static CheckLevel configuredLevel() {
        Settings.Value set = Settings.ofProcess().get(Setting.CHECK).orElse(null);
        return set == null ? CheckLevel.OFF : level(set);
    }

    private static CheckLevel level(Settings.Value set) {
        for (CheckLevel level : CheckLevel.values()) {
            if (level.toString().equals(set.text())) {
                return level;
            }
        }
        throw new ConfigurationException(
                set.source() + " is '" + set.text() + "', which is none of " + Arrays.toString(CheckLevel.values()));
    }

    /// Plain segments, and blocks that are segments of their own, have no pages.
    private static void checkPages(OptionReader reader, @Nullable Boolean expandable, boolean splits) {
        if (!splits && Boolean.TRUE.equals(expandable)) {
            throw contradiction(
                    "splits=false",
                    "expandable_segments=true",
                    "a block that is a segment of its own does not grow by pages; leave one of them out");
        }
        String ofPages = reader.firstGiven(OF_PAGES);
        if (ofPages != null && (!splits || Boolean.FALSE.equals(expandable))) {
            throw contradiction(
                    ofPages,
                    splits ? "expandable_segments=false" : "splits=false",
                    "plain segments have no pages; legal: " + OF_PAGES
                            + " with expandable_segments=true or without it, and splits=true");
        }
    }

    private static ConfigurationException contradiction(String one, String other, String why) {
        return new ConfigurationException("caching: " + one + " contradicts " + other + ": " + why);
    }

    /// Where the source is chosen by the device, what is said of pages holds where there are some.
    private static @Nullable String readAsksForPages(OptionReader reader, @Nullable Boolean expandable) {
        if (Boolean.TRUE.equals(expandable)) {
            return "expandable_segments=true";
        }
        return reader.value(CachingOption.SOURCE) == null ? null : reader.firstGiven(OF_PAGES);
    }

    private static PagePolicy readPages(OptionReader reader, long largeSegmentBytes) {
        boolean limited = reader.value(CachingOption.LARGE_SEGMENT_SIZE_MB) != null;
        PagePolicy policy = new PagePolicy(
                readPageBytes(reader),
                limited ? largeSegmentBytes : PagePolicy.LARGEST_BYTES,
                reader.value(CachingOption.FIT, PageFit.USUAL),
                reader.value(CachingOption.REUSE, PageReuse.ADAPTIVE),
                reader.value(CachingOption.STABLE_MAPPING, false),
                reader.value(CachingOption.COMPACTION_BYTES, PagePolicy.USUAL_COMPACTION_BYTES));
        checkPolicy(reader, policy);
        return policy;
    }

    private static void checkPolicy(OptionReader reader, PagePolicy policy) {
        if (policy.fixedBytes() != 0 && policy.fit() == PageFit.TIGHT) {
            throw contradiction("page_size", "fit=tight", "both say how large pages are; leave one of them out");
        }
        if (policy.compactionBytes() < 0) {
            throw CachingOption.COMPACTION_BYTES.illegal(policy.compactionBytes());
        }
        if (policy.stableMapping() && reader.value(CachingOption.REUSE) != null && policy.reuse() != PageReuse.NEVER) {
            throw contradiction(
                    "reuse=" + policy.reuse(), "stable_mapping=true", "no page moves; legal: reuse=never, or no reuse");
        }
    }

    private static long readPageBytes(OptionReader reader) {
        Long given = reader.value(CachingOption.PAGE_SIZE);
        if (given == null) {
            return 0;
        }
        if (given < Sizes.SLOT || given > LARGEST_PAGE) {
            throw CachingOption.PAGE_SIZE.illegal(given);
        }
        return given;
    }

    private static long readLargeSegment(OptionReader reader) {
        long mebibytes = reader.value(CachingOption.LARGE_SEGMENT_SIZE_MB, USUAL_LARGE_SEGMENT >> MIB_SHIFT);
        if (mebibytes % 2 != 0) {
            throw CachingOption.LARGE_SEGMENT_SIZE_MB.illegal(mebibytes);
        }
        return mebibytes << MIB_SHIFT;
    }

    /// Up to what pages are aligned to.
    private static long readAlignment(OptionReader reader) {
        long alignment = reader.value(CachingOption.ALIGNMENT, USUAL_ALIGNMENT);
        if (alignment < USUAL_ALIGNMENT || alignment > Sizes.SLOT || Long.bitCount(alignment) != 1) {
            throw CachingOption.ALIGNMENT.illegal(alignment);
        }
        return alignment;
    }

    private static SplitOptions readSplitting(OptionReader reader, boolean splits, long largeSegmentBytes) {
        long maxSplit = reader.value(CachingOption.MAX_SPLIT_SIZE_MB, 0L) << MIB_SHIFT;
        if (maxSplit != 0 && maxSplit < largeSegmentBytes) {
            throw CachingOption.MAX_SPLIT_SIZE_MB.illegal(
                    (maxSplit >> MIB_SHIFT) + " with large_segment_size_mb=" + (largeSegmentBytes >> MIB_SHIFT));
        }
        if (maxSplit != 0 && !splits) {
            throw contradiction("max_split_size_mb", "splits=false", "nothing is cut; leave one of them out");
        }
        long rounding =
                reader.value(CachingOption.MAX_NON_SPLIT_ROUNDING_MB, largeSegmentBytes >> MIB_SHIFT) << MIB_SHIFT;
        return new SplitOptions(splits, maxSplit, rounding);
    }

    private static ReserveLimit readLimit(OptionReader reader) {
        Double fraction = reader.value(CachingOption.PER_PROCESS_MEMORY_FRACTION);
        Double threshold = reader.value(CachingOption.GARBAGE_COLLECTION_THRESHOLD);
        if (threshold != null && (threshold <= 0 || threshold >= 1)) {
            throw CachingOption.GARBAGE_COLLECTION_THRESHOLD.illegal(threshold);
        }
        boolean failsAtOnce = reader.value(CachingOption.THROW_ON_CUDAMALLOC_OOM, false);
        if (failsAtOnce && fraction == null) {
            throw CachingOption.THROW_ON_CUDAMALLOC_OOM.illegal("true without per_process_memory_fraction");
        }
        return new ReserveLimit(
                readMaxBytes(reader, fraction != null),
                fraction == null ? 1 : fraction,
                threshold == null ? 1 : threshold,
                failsAtOnce);
    }

    private static long readMaxBytes(OptionReader reader, boolean hasFraction) {
        long maxBytes = reader.value(CachingOption.MAX_BYTES, Long.MAX_VALUE);
        if (maxBytes <= 0) {
            throw CachingOption.MAX_BYTES.illegal(maxBytes);
        }
        if (maxBytes != Long.MAX_VALUE && hasFraction) {
            throw contradiction(
                    CachingOption.MAX_BYTES.key(),
                    CachingOption.PER_PROCESS_MEMORY_FRACTION.key(),
                    "both say how much may be reserved; leave one of them out");
        }
        return maxBytes;
    }

    private static long readInitialBytes(OptionReader reader) {
        long initialBytes = reader.value(CachingOption.INITIAL_BYTES, 0L);
        if (initialBytes < 0 || initialBytes > reader.value(CachingOption.MAX_BYTES, Long.MAX_VALUE)) {
            throw CachingOption.INITIAL_BYTES.illegal(initialBytes);
        }
        return initialBytes;
    }

    /// From one block of the largest class.
    private static ThreadCacheLimit readThreadCaches(OptionReader reader) {
        Long threadCacheBytes = reader.value(CachingOption.THREAD_CACHE_BYTES);
        if (threadCacheBytes != null
                && (threadCacheBytes < Sizes.SMALL_LIMIT || threadCacheBytes > ThreadCacheLimit.LARGEST)) {
            throw CachingOption.THREAD_CACHE_BYTES.illegal(threadCacheBytes);
        }
        boolean used = reader.value(CachingOption.THREAD_CACHES, true);
        if (threadCacheBytes != null && !used) {
            throw contradiction(
                    "thread_cache_bytes", "thread_caches=false", "threads keep nothing; leave one of them out");
        }
        return threadCacheBytes == null
                ? used ? ThreadCacheLimit.USUAL : ThreadCacheLimit.NONE
                : new ThreadCacheLimit(used, threadCacheBytes);
    }

    /// The same for the memory of graphs: pages stay where they are, and threads keep nothing, since a block that
    /// was freed in one capture serves another stream of it, or a later one.
    CachingOptions forGraphs() {
        return new CachingOptions(
                source,
                growsByPages,
                asksForPages,
                pages.stable(),
                largeSegmentBytes,
                alignment,
                rounding,
                splitOptions,
                new ReserveLimit(limit.maxBytes(), limit.fraction(), 1, false),
                0,
                ThreadCacheLimit.NONE,
                CheckLevel.OFF,
                false);
    }

    boolean splits() {
        return splitOptions.splits();
    }

    /// How memory grows by plain segments.
    SegmentPolicy segments() {
        return new SegmentPolicy(alignment, blockUnit(), largeSegmentBytes, splitOptions);
    }

    /// What a request for so many bytes takes.
    Rounding blockSizes() {
        return usesThreadCaches() ? rounding.inClasses() : rounding;
    }

    private long blockUnit() {
        return rounding.unit();
    }

    /// Whether threads keep blocks. Thread caches keep blocks of classes of sizes, which are only multiples of a
    /// granule, and never whole segments; other rounding makes classes of its own.
    boolean usesThreadCaches() {
        return threadCaches.used() && splits() && blockUnit() == Sizes.GRANULE && !rounding.divides();
    }

    /// Larger blocks are not kept in thread caches; those that are never cut may be larger than what was asked
    /// for.
    long largestInThreadCache() {
        return Math.min(ThreadCache.LARGEST_KEPT, splitOptions.oversizeBytes() - Sizes.GRANULE);
    }

    /// Why idle segments can't be put together.
    String whyInSegments(boolean hasPages) {
        return hasPages
                ? "expandable_segments=false, or splits=false, has memory in segments; pages can be put together"
                : "memory of source " + source + " comes in segments; pages (source=pages) can be put together";
    }

    /// Whether memory from the source grows by pages.
    ///
    /// @param hasPages whether the source has physical handles
    /// @throws ConfigurationException if pages were asked for and it has not
    boolean growsByPages(boolean hasPages) {
        if (!hasPages && asksForPages != null) {
            throw contradiction(
                    asksForPages,
                    "source=" + source,
                    "it gives plain ranges; legal: a source of physical handles, such as pages or vmm");
        }
        return hasPages && !Boolean.FALSE.equals(growsByPages);
    }

    /// Pages need virtual memory management; plain segments do for a device without.
    private static String usualSource(DeviceEnvironment devices, @Nullable Boolean expandable) {
        if (Boolean.FALSE.equals(expandable)) {
            return "linear";
        }
        for (int device = 0; device < devices.deviceCount(); device++) {
            if (!devices.virtualMemory(device).available()) {
                return "linear";
            }
        }
        return "pages";
    }
}
