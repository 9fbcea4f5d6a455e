package io.cistern.caching;

import io.cistern.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorOptions;
import io.cistern.spi.DeviceEnvironment;
import java.util.List;
import java.util.Locale;

/// The options of `caching`.
///
/// @param source the spec of the segment source
/// @param pageBytes the size of every page, or 0 for sizes that follow what is reserved
/// @param alignment what all addresses are multiples of, a power of two
/// @param splits whether blocks are cut for smaller requests; if not, each is a segment of its own
/// @param lanes whether threads keep blocks that they freed
/// @param laneBytes how much of small blocks each, or 0 for an amount that follows what is reserved
/// @param reuse whether idle pages of one stream serve another
/// @param slack how much more than the peak of live bytes may be reserved to save moving pages, as a share of it
/// @param stableMapping whether every virtual page keeps its physical page for life
record CachingOptions(
        String source,
        long pageBytes,
        long alignment,
        boolean splits,
        boolean lanes,
        long laneBytes,
        PageReuse reuse,
        double slack,
        boolean stableMapping) {
    /// What every allocator promises.
    static final long USUAL_ALIGNMENT = 256;

    /// A twentieth of the peak settles every trace we have within three passes.
    static final double USUAL_SLACK = 0.05;

    /// Handles larger than this save no calls worth speaking of.
    private static final long LARGEST_PAGE = 1L << 30;

    private static final long LARGEST_LANE = 1L << 30;

    static CachingOptions read(AllocatorContext context) {
        AllocatorOptions options = context.options();
        long pageBytes = options.bytes("page_size").orElse(0L);
        if (options.bytes("page_size").isPresent() && (pageBytes < Sizes.SLOT || pageBytes > LARGEST_PAGE)) {
            throw new ConfigurationException("caching: page_size is from 2MiB to 1GiB, not " + pageBytes + " bytes");
        }
        return new CachingOptions(
                options.text("source").orElseGet(() -> usualSource(context.devices())),
                pageBytes,
                readAlignment(options),
                options.flag("splits").orElse(true),
                options.flag("lanes").orElse(true),
                readLaneBytes(options),
                readReuse(options),
                options.fraction("slack").orElse(USUAL_SLACK),
                options.flag("stable_mapping").orElse(false));
    }

    private static PageReuse readReuse(AllocatorOptions options) {
        return options.choice("reuse", List.of("never", "passed", "wait"))
                .map(word -> PageReuse.valueOf(word.toUpperCase(Locale.ROOT)))
                .orElse(PageReuse.WAIT);
    }

    /// From one block of the largest class.
    private static long readLaneBytes(AllocatorOptions options) {
        long laneBytes = options.bytes("lane_bytes").orElse(0L);
        if (options.bytes("lane_bytes").isPresent() && (laneBytes < Sizes.SMALL_LIMIT || laneBytes > LARGEST_LANE)) {
            throw new ConfigurationException("caching: lane_bytes is from 1MiB to 1GiB, not " + laneBytes + " bytes");
        }
        return laneBytes;
    }

    /// Lanes keep blocks of classes of sizes, which are only multiples of a granule, and never whole segments.
    boolean usesLanes() {
        return lanes && splits && blockUnit() == Sizes.GRANULE;
    }

    /// Up to what pages are aligned to.
    private static long readAlignment(AllocatorOptions options) {
        long alignment = options.bytes("alignment").orElse(USUAL_ALIGNMENT);
        if (alignment < USUAL_ALIGNMENT || alignment > Sizes.SLOT || Long.bitCount(alignment) != 1) {
            throw new ConfigurationException(
                    "caching: alignment is a power of two from 256 to 2MiB, not " + alignment + " bytes");
        }
        return alignment;
    }

    /// What all block sizes are multiples of.
    long blockUnit() {
        return Math.max(Sizes.GRANULE, alignment);
    }

    /// Pages need virtual memory management; plain segments do for a device without.
    private static String usualSource(DeviceEnvironment devices) {
        for (int device = 0; device < devices.deviceCount(); device++) {
            if (!devices.virtualMemory(device).available()) {
                return "linear";
            }
        }
        return "pages";
    }
}
