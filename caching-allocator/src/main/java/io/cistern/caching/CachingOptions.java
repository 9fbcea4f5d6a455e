package io.cistern.caching;

import io.cistern.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceEnvironment;
import org.jspecify.annotations.Nullable;

/// The options of one `caching`, read and checked against each other.
///
/// @param source the spec of the segment source
/// @param growsByPages whether memory grows by pages; null where the source decides
/// @param pages the sizes of pages, and which of them move
/// @param largeSegmentBytes the size of a segment that large blocks share
/// @param alignment what all addresses are multiples of, a power of two
/// @param rounding the sizes of blocks, where lanes do not choose them
/// @param splitting which blocks are cut
/// @param limit how much may be reserved
/// @param lanes what threads keep of blocks that they freed
/// @param check how much is checked
record CachingOptions(
        String source,
        @Nullable Boolean growsByPages,
        PagePolicy pages,
        long largeSegmentBytes,
        long alignment,
        Rounding rounding,
        Splitting splitting,
        ReserveLimit limit,
        LaneLimit lanes,
        CheckLevel check) {
    /// What every allocator promises.
    static final long USUAL_ALIGNMENT = 256;

    /// PyTorch's.
    static final long USUAL_LARGE_SEGMENT = 20L << 20;

    /// Handles larger than this save no calls worth speaking of.
    private static final long LARGEST_PAGE = 1L << 30;

    private static final int MIB_SHIFT = 20;

    /// Every option as it usually is.
    static CachingOptions usual(String source, PagePolicy pages, LaneLimit lanes) {
        return new CachingOptions(
                source,
                null,
                pages,
                USUAL_LARGE_SEGMENT,
                USUAL_ALIGNMENT,
                new Rounding(Sizes.GRANULE, null),
                new Splitting(true, 0, USUAL_LARGE_SEGMENT),
                ReserveLimit.NONE,
                lanes,
                CheckLevel.OFF);
    }

    /// Reads the options of a spec.
    ///
    /// @throws ConfigurationException for a value that is not legal, or two that contradict each other
    static CachingOptions read(AllocatorContext context) {
        OptionReader reader = new OptionReader(context.options());
        Boolean expandable = reader.value(CachingOption.EXPANDABLE_SEGMENTS);
        boolean splits = reader.value(CachingOption.SPLITS, true);
        if (!splits && Boolean.TRUE.equals(expandable)) {
            throw new ConfigurationException("caching: splits=false contradicts expandable_segments=true: a block that"
                    + " is a segment of its own does not grow by pages");
        }
        long large = readLargeSegment(reader);
        long alignment = readAlignment(reader);
        return new CachingOptions(
                reader.value(CachingOption.SOURCE, usualSource(context.devices(), expandable)),
                splits ? expandable : Boolean.FALSE,
                readPages(reader, expandable, large),
                large,
                alignment,
                new Rounding(Math.max(Sizes.GRANULE, alignment), reader.value(CachingOption.ROUNDUP_POWER2_DIVISIONS)),
                readSplitting(reader, splits, large),
                readLimit(reader),
                readLanes(reader),
                reader.value(CachingOption.CHECK, CheckLevel.configured()));
    }

    private static PagePolicy readPages(OptionReader reader, @Nullable Boolean expandable, long largeSegmentBytes) {
        boolean limited = reader.value(CachingOption.LARGE_SEGMENT_SIZE_MB) != null;
        return new PagePolicy(
                readPageBytes(reader, expandable),
                limited ? largeSegmentBytes : PagePolicy.LARGEST_BYTES,
                reader.value(CachingOption.REUSE, PageReuse.WAIT),
                reader.value(CachingOption.SLACK, PagePolicy.USUAL_SLACK),
                reader.value(CachingOption.STABLE_MAPPING, false));
    }

    private static long readPageBytes(OptionReader reader, @Nullable Boolean expandable) {
        Long given = reader.value(CachingOption.PAGE_SIZE);
        if (given == null) {
            return 0;
        }
        if (given < Sizes.SLOT || given > LARGEST_PAGE) {
            throw CachingOption.PAGE_SIZE.illegal(given);
        }
        if (Boolean.FALSE.equals(expandable)) {
            throw new ConfigurationException(
                    "caching: page_size contradicts expandable_segments=false: plain segments" + " have no pages");
        }
        return given;
    }

    private static long readLargeSegment(OptionReader reader) {
        long mebibytes = reader.value(CachingOption.LARGE_SEGMENT_SIZE_MB, USUAL_LARGE_SEGMENT >> MIB_SHIFT);
        if (mebibytes < 2 || mebibytes > 1024 || mebibytes % 2 != 0) {
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

    private static Splitting readSplitting(OptionReader reader, boolean splits, long largeSegmentBytes) {
        long maxSplit = reader.value(CachingOption.MAX_SPLIT_SIZE_MB, 0L) << MIB_SHIFT;
        if (maxSplit != 0 && maxSplit < largeSegmentBytes) {
            throw CachingOption.MAX_SPLIT_SIZE_MB.illegal(
                    (maxSplit >> MIB_SHIFT) + " with large_segment_size_mb=" + (largeSegmentBytes >> MIB_SHIFT));
        }
        if (maxSplit != 0 && !splits) {
            throw new ConfigurationException("caching: max_split_size_mb contradicts splits=false: nothing is cut");
        }
        long rounding =
                reader.value(CachingOption.MAX_NON_SPLIT_ROUNDING_MB, largeSegmentBytes >> MIB_SHIFT) << MIB_SHIFT;
        return new Splitting(splits, maxSplit, rounding);
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
        return new ReserveLimit(fraction == null ? 1 : fraction, threshold == null ? 1 : threshold, failsAtOnce);
    }

    /// From one block of the largest class.
    private static LaneLimit readLanes(OptionReader reader) {
        Long laneBytes = reader.value(CachingOption.LANE_BYTES);
        if (laneBytes != null && (laneBytes < Sizes.SMALL_LIMIT || laneBytes > LaneLimit.LARGEST)) {
            throw CachingOption.LANE_BYTES.illegal(laneBytes);
        }
        return new LaneLimit(reader.value(CachingOption.LANES, true), laneBytes == null ? 0 : laneBytes);
    }

    boolean splits() {
        return splitting.splits();
    }

    /// What all block sizes are multiples of.
    long blockUnit() {
        return rounding.unit();
    }

    /// Whether threads keep blocks. Lanes keep blocks of classes of sizes, which are only multiples of a
    /// granule, and never whole segments; other rounding makes classes of its own.
    boolean usesLanes() {
        return lanes.used() && splits() && blockUnit() == Sizes.GRANULE && !rounding.divides();
    }

    /// Larger blocks are not kept in lanes; those that are never cut may be larger than what was asked for.
    long largestInLane() {
        return Math.min(Lane.LARGEST_KEPT, splitting.oversizeBytes() - Sizes.GRANULE);
    }

    /// Whether memory from the source grows by pages.
    ///
    /// @param hasPages whether the source has physical handles
    /// @throws ConfigurationException if pages were asked for and it has not
    boolean growsByPages(boolean hasPages) {
        if (!hasPages && Boolean.TRUE.equals(growsByPages)) {
            throw new ConfigurationException("caching: expandable_segments=true contradicts source=" + source
                    + ", which gives plain ranges; pages come from sources of physical handles, such as pages or vmm");
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
