package io.cistern.caching.internal.growth;

import io.cistern.caching.options.PageFit;
import io.cistern.caching.options.PageReuse;
import java.util.ArrayList;
import java.util.List;

/// The sizes of pages, and which pages move.
///
/// @param fixedBytes the size of every page, or 0 for sizes that follow the live bytes
/// @param fit how small these sizes are
/// @param reuse whether idle pages of one stream serve another
/// @param stableMapping whether every virtual page keeps its physical page for life
/// @param compactionBytes the most bytes of live pages that one compaction copies; 0 for no compaction
public record PagePolicy(long fixedBytes, PageFit fit, PageReuse reuse, boolean stableMapping, long compactionBytes) {
    /// Bounds how long one compaction stops the device; its driver calls cost more than its copies.
    public static final long USUAL_COMPACTION_BYTES = 4L << 30;

    /// So large that the calls for a page hardly depend on its size any more.
    public static final long LARGEST_BYTES = 512L << 20;

    public static final PagePolicy USUAL =
            new PagePolicy(0, PageFit.USUAL, PageReuse.ADAPTIVE, false, USUAL_COMPACTION_BYTES);

    /// Returns the options that keep idle pages apart, each with the option to set instead.
    public List<String> whyInPieces() {
        List<String> why = new ArrayList<>();
        if (stableMapping) {
            why.add("stable_mapping=true keeps idle pages where they are");
        } else if (reuse == PageReuse.NEVER) {
            why.add("reuse=never keeps a stream's idle pages from others; reuse=adaptive does not");
        }
        if (fixedBytes != 0) {
            why.add("page_size frees a page of " + fixedBytes + " bytes only as a whole");
        } else if (fit != PageFit.TIGHT) {
            why.add("fit=tight uses smaller pages, which helps where live blocks can't move");
        }
        if (compactionBytes == 0 && !stableMapping && fixedBytes == 0) {
            why.add("compaction_bytes=0 leaves live blocks where they are; " + (USUAL_COMPACTION_BYTES >> 30)
                    + "GiB is the default");
        }
        return why;
    }

    /// Returns the same policy, with pages that never move.
    public PagePolicy stable() {
        return new PagePolicy(fixedBytes, fit, PageReuse.NEVER, true, 0);
    }
}
