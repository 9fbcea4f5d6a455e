package io.cistern.caching;

import io.cistern.caching.internal.base.Sizes;
import io.cistern.caching.internal.growth.PagePolicy;
import io.cistern.caching.internal.growth.SegmentPolicy;
import io.cistern.caching.internal.page.ReserveLimit;
import io.cistern.caching.options.CachingOption;
import io.cistern.caching.options.CheckLevel;
import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.settings.IllegalSettingException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceEnvironment;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// The options of one `caching` allocator, read and checked against each other.
///
/// @param source the spec of the segment source
/// @param growsByPages whether memory grows by pages; null if the source decides
/// @param asksForPages an option of the spec that needs a source of pages, if the spec also chooses the
///     source; else null
/// @param pages the sizes of pages, and which pages move
/// @param alignment the alignment of all addresses, a power of two
/// @param splits whether blocks are split
/// @param limit how much may be reserved
/// @param initialBytes the bytes obtained with the first request of a device
/// @param threadCacheBytes the most bytes of small blocks that each thread keeps; 0 if threads keep none
/// @param check how much is checked
/// @param givesBack whether idle memory may return to the driver when memory is short; false for the memory
///     of graphs
record CachingOptions(
        String source,
        @Nullable Boolean growsByPages,
        @Nullable String asksForPages,
        PagePolicy pages,
        long alignment,
        boolean splits,
        ReserveLimit limit,
        long initialBytes,
        long threadCacheBytes,
        CheckLevel check,
        boolean givesBack) {
    /// The alignment that every allocator promises.
    static final long USUAL_ALIGNMENT = 256;

    /// Enough for hundreds of live blocks of mixed sizes. Misses that need memory empty the thread caches first.
    static final long USUAL_THREAD_CACHE_BYTES = 32L << 20;

    /// The sources whose memory is known to be the device's own.
    private static final List<String> TAKE_FROM_DEVICE = List.of("pages", "linear");

    /// The options that apply only to pages. Plain segments have no pages, so these options contradict them.
    private static final List<CachingOption<?>> OF_PAGES = List.of(
            CachingOption.PAGE_SIZE,
            CachingOption.FIT,
            CachingOption.REUSE,
            CachingOption.STABLE_MAPPING,
            CachingOption.COMPACTION_BYTES);

    /// @throws ConfigurationException if a value is not legal, or two contradict each other
    static CachingOptions read(AllocatorContext context) {
        OptionReader reader = new OptionReader(context.options());
        DeviceEnvironment devices = context.devices();
        Boolean expandable = reader.value(CachingOption.EXPANDABLE_SEGMENTS);
        boolean splits = reader.value(CachingOption.SPLITS, true);
        checkPages(reader, expandable, splits);
        return new CachingOptions(
                reader.value(CachingOption.SOURCE, usualSource(devices, expandable)),
                splits ? expandable : Boolean.FALSE,
                readAsksForPages(reader, expandable),
                readPages(reader),
                reader.value(CachingOption.ALIGNMENT, USUAL_ALIGNMENT),
                splits,
                readLimit(reader),
                readInitialBytes(reader),
                readThreadCacheBytes(reader),
                reader.value(CachingOption.CHECK, configuredLevel()),
                true);
    }

    /// Reads the checking level from the settings.
    ///
    /// @throws ConfigurationException if they name an unknown level
    private static CheckLevel configuredLevel() {
        Settings.Value set = Settings.ofProcess().get(Setting.CHECK).orElse(null);
        if (set == null || set.text().equalsIgnoreCase("streams")) { // an observer checks streams, for every allocator
            return CheckLevel.OFF;
        }
        try {
            return CheckLevel.valueOf(set.word().toUpperCase(Locale.ROOT));
        } catch (IllegalSettingException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    /// Rejects options of pages for plain segments and for blocks that are segments of their own: these have no pages.
    private static void checkPages(OptionReader reader, @Nullable Boolean expandable, boolean splits) {
        if (!splits && Boolean.TRUE.equals(expandable)) {
            throw contradiction(
                    "splits=false",
                    "expandable_segments=true",
                    "a block with a segment of its own does not grow by pages; leave one of them out");
        }
        String ofPages = reader.firstGiven(OF_PAGES);
        if (ofPages != null && (!splits || Boolean.FALSE.equals(expandable))) {
            throw contradiction(
                    ofPages,
                    splits ? "expandable_segments=false" : "splits=false",
                    "plain segments have no pages; valid: " + OF_PAGES
                            + " with expandable_segments=true or without it, and splits=true");
        }
    }

    private static ConfigurationException contradiction(String one, String other, String why) {
        return new ConfigurationException("caching: " + one + " contradicts " + other + ": " + why);
    }

    /// If the spec names no source, options of pages apply only if the device's default source has pages.
    private static @Nullable String readAsksForPages(OptionReader reader, @Nullable Boolean expandable) {
        if (Boolean.TRUE.equals(expandable)) {
            return "expandable_segments=true";
        }
        return reader.value(CachingOption.SOURCE) == null ? null : reader.firstGiven(OF_PAGES);
    }

    private static PagePolicy readPages(OptionReader reader) {
        PagePolicy policy = new PagePolicy(
                reader.value(CachingOption.PAGE_SIZE, 0L),
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
        if (policy.stableMapping() && reader.value(CachingOption.REUSE) != null && policy.reuse() != PageReuse.NEVER) {
            throw contradiction(
                    "reuse=" + policy.reuse(),
                    "stable_mapping=true",
                    "no page moves; valid: reuse=never, or no reuse option");
        }
    }

    private static ReserveLimit readLimit(OptionReader reader) {
        Double fraction = reader.value(CachingOption.PER_PROCESS_MEMORY_FRACTION);
        boolean failsAtOnce = reader.value(CachingOption.THROW_ON_CUDAMALLOC_OOM, false);
        if (failsAtOnce && fraction == null) {
            failsAtOnce = false;
            reader.withoutEffect(CachingOption.THROW_ON_CUDAMALLOC_OOM, "true without per_process_memory_fraction");
        }
        return new ReserveLimit(readMaxBytes(reader, fraction != null), fraction == null ? 1 : fraction, failsAtOnce);
    }

    private static long readMaxBytes(OptionReader reader, boolean hasFraction) {
        long maxBytes = reader.value(CachingOption.MAX_BYTES, Long.MAX_VALUE);
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
        if (initialBytes > reader.value(CachingOption.MAX_BYTES, Long.MAX_VALUE)) {
            throw CachingOption.INITIAL_BYTES.illegal(initialBytes);
        }
        return initialBytes;
    }

    private static long readThreadCacheBytes(OptionReader reader) {
        if (reader.value(CachingOption.THREAD_CACHES, true)) {
            return reader.value(CachingOption.THREAD_CACHE_BYTES, USUAL_THREAD_CACHE_BYTES);
        }
        if (reader.value(CachingOption.THREAD_CACHE_BYTES) != null) {
            throw contradiction(
                    "thread_cache_bytes", "thread_caches=false", "threads keep nothing; leave one of them out");
        }
        return 0;
    }

    /// Returns the options for the memory of graphs: pages stay where they are, and threads keep nothing, since
    /// a block that was freed in one capture may serve its other streams, or a later capture.
    CachingOptions forGraphs() {
        return new CachingOptions(
                source,
                growsByPages,
                asksForPages,
                pages.stable(),
                alignment,
                splits,
                new ReserveLimit(limit.maxBytes(), limit.fraction(), false),
                0,
                0,
                CheckLevel.OFF,
                false);
    }

    /// Rejects options with which a device could never serve a request: a limit below one page, initial bytes or
    /// a page above the limit or the device.
    ///
    /// @throws ConfigurationException if such an option is set
    void requireServable(int device, long deviceBytes) {
        long cap = limit.capBytes(deviceBytes);
        long page = Math.max(pages.fixedBytes(), Sizes.SLOT);
        if (cap < page) {
            throw new ConfigurationException("caching: " + limit.option() + " allows " + cap + " of the " + deviceBytes
                    + " bytes of device " + device + ", too few for any request; at least " + page
                    + " bytes are needed, one page" + (pages.fixedBytes() == 0 ? "" : " of page_size"));
        }
        if (pages.fixedBytes() > deviceBytes) {
            throw contradiction(
                    "page_size=" + page,
                    "the " + deviceBytes + " bytes of device " + device,
                    "not one page fits; valid: at least 2MiB, at most the device's memory");
        }
        long room = Math.min(cap, TAKE_FROM_DEVICE.contains(source) ? deviceBytes : Sizes.LARGEST);
        long initial = initialBytes > room ? initialBytes : Sizes.roundUp(initialBytes, page);
        if (initial > room) {
            throw contradiction(
                    "initial_bytes=" + initialBytes,
                    room == cap ? limit.option().key() : "the size of device " + device,
                    "they take " + initial + " bytes in whole pages of " + page + ", but only " + room
                            + " are available");
        }
    }

    SegmentPolicy segments() {
        return new SegmentPolicy(alignment, blockUnit(), splits);
    }

    long blockUnit() {
        return Math.max(Sizes.GRANULE, alignment);
    }

    /// Whether threads keep blocks. The sizes in thread caches are multiples of a granule only, and never whole
    /// segments.
    boolean usesThreadCaches() {
        return threadCacheBytes > 0 && splits && blockUnit() == Sizes.GRANULE;
    }

    /// Says why idle segments can't be combined.
    String whyInSegments(boolean hasPages) {
        return hasPages
                ? "with expandable_segments=false or splits=false, memory comes in segments; pages can be combined"
                : "memory of source " + source + " comes in segments; pages (source=pages) can be combined";
    }

    /// Whether memory from the source grows by pages.
    ///
    /// @param hasPages whether the source has physical handles
    /// @throws ConfigurationException if an option asks for pages and the source has none
    boolean growsByPages(boolean hasPages) {
        if (!hasPages && asksForPages != null) {
            throw contradiction(
                    asksForPages,
                    "source=" + source,
                    "it gives plain ranges; valid: a source of physical handles, such as pages or vmm");
        }
        return hasPages && !Boolean.FALSE.equals(growsByPages);
    }

    /// Chooses pages if all devices have virtual memory management, else plain segments.
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
