package io.cistern.cli.fit;

import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Trace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Finds which code holds the memory of a recorded program: at the peak, at the end, and more and more of it.
///
/// A site is the innermost line of the program's own code in a block's call stack.
final class Holders {
    /// Equal parts of the time, for growth.
    private static final int PARTS = 10;
    /// Rises from part to part that make a leak.
    private static final int MANY_RISES = 8;
    /// Rises in the last parts that do, too.
    private static final int LAST_RISES = 5;
    /// With fewer rows, no growth is no news.
    private static final int MIN_ROWS = 20;
    /// Less growth is never a leak.
    private static final long MIN_GROWTH = 1 << 16;

    private final Recording recording;
    private final Trace trace;
    /// By number.
    private final List<String> sites = new ArrayList<>();
    /// By the number of a stack.
    private final int[] siteOf;

    private final BitSet refusedRows = new BitSet();

    /// The memory of one site at a moment.
    ///
    /// @param site empty if no call stack is known
    record Holder(String site, long byteSize, long blocks) {}

    /// A moment.
    ///
    /// @param row the last row before it
    /// @param requestedBytes what the program asks for then, a request that was refused included
    /// @param holders who holds it, without that request; the most bytes first
    record Moment(int row, long requestedBytes, List<Holder> holders) {}

    /// A site whose live bytes only grow.
    ///
    /// @param byteSize its live bytes at the end
    /// @param rises in how many parts of ten they were more than in the part before
    /// @param made its allocations
    /// @param freed those that were freed
    record Leak(String site, long byteSize, int rises, long made, long freed) {}

    Holders(Recording recording) {
        this.recording = recording;
        trace = recording.trace();
        recording.refusals().forEach(each -> refusedRows.set(each.row()));
        Map<String, Integer> numbers = new HashMap<>();
        siteOf = new int[recording.callStacks().stacks().size()];
        for (int stack = 0; stack < siteOf.length; stack++) {
            siteOf[stack] = numbers.computeIfAbsent(recording.callStacks().site(stack), site -> {
                sites.add(site);
                return sites.size() - 1;
            });
        }
    }

    private int site(int row) {
        return siteOf[recording.stacks()[row]];
    }

    /// Returns when the program asked for most, requests that were refused included.
    Moment peak() {
        return moment(peakRow(true));
    }

    /// Returns the most bytes that the program had at once, without requests that were refused.
    long servedPeakBytes() {
        return moment(peakRow(false)).requestedBytes();
    }

    private int peakRow(boolean refusedToo) {
        long[] bytes = new long[trace.slotCount()];
        long live = 0;
        long most = -1;
        int at = 0;
        for (int row = 0; row < trace.ops().length; row++) {
            int slot = trace.slots()[row];
            if (trace.ops()[row] == Trace.ALLOCATE) {
                bytes[slot] = trace.byteSizes()[row];
                live += bytes[slot];
                if (live > most && (refusedToo || !refusedRows.get(row))) {
                    most = live;
                    at = row;
                }
            } else if (trace.ops()[row] == Trace.FREE) {
                live -= bytes[slot];
            }
        }
        return at;
    }

    private Moment moment(int lastRow) {
        int[] madeBy = new int[trace.slotCount()];
        Arrays.fill(madeBy, -1);
        for (int row = 0; row <= lastRow; row++) {
            if (trace.ops()[row] == Trace.ALLOCATE) {
                madeBy[trace.slots()[row]] = row;
            } else if (trace.ops()[row] == Trace.FREE) {
                madeBy[trace.slots()[row]] = -1;
            }
        }
        long[] bytes = new long[sites.size()];
        long[] blocks = new long[sites.size()];
        long requested = 0;
        for (int row : madeBy) {
            if (row >= 0) {
                requested += trace.byteSizes()[row];
                if (!refusedRows.get(row)) {
                    bytes[site(row)] += trace.byteSizes()[row];
                    blocks[site(row)]++;
                }
            }
        }
        List<Holder> holders = new ArrayList<>();
        for (int site = 0; site < bytes.length; site++) {
            if (blocks[site] > 0) {
                holders.add(new Holder(sites.get(site), bytes[site], blocks[site]));
            }
        }
        holders.sort(Comparator.comparingLong(Holder::byteSize).reversed());
        return new Moment(lastRow, requested, holders);
    }

    /// Returns the sites whose live bytes only grow, those that grow most first: the least of each tenth of the time is
    /// above that of the tenth before, in nearly all tenths or in the last half. The page of a report has the same
    /// rule.
    ///
    /// Blocks from before the recording that are never freed do not hide growth.
    List<Leak> leaks() {
        int[] parts = parts();
        long[] now = new long[sites.size()];
        long[] made = new long[sites.size()];
        long[] freed = new long[sites.size()];
        int[] lastPart = new int[sites.size()];
        long[][] floors = new long[sites.size()][PARTS];
        for (long[] floor : floors) {
            Arrays.fill(floor, Long.MAX_VALUE);
        }
        long[] older = new long[sites.size()];
        int[] madeBy = new int[trace.slotCount()];
        for (int row = 0; row < trace.ops().length; row++) {
            int slot = trace.slots()[row];
            if (trace.ops()[row] == Trace.ALLOCATE) {
                madeBy[slot] = row;
            } else if (trace.ops()[row] != Trace.FREE) {
                continue;
            }
            if (refusedRows.get(madeBy[slot])) {
                continue;
            }
            int site = site(madeBy[slot]);
            lower(floors[site], now[site], lastPart[site], parts[row]);
            lastPart[site] = parts[row];
            boolean isMade = madeBy[slot] == row;
            now[site] += (isMade ? 1 : -1) * trace.byteSizes()[madeBy[slot]];
            made[site] += isMade ? 1 : 0;
            freed[site] += isMade ? 0 : 1;
            if (madeBy[slot] < recording.recorder().olderBlocks()) {
                older[site] += (isMade ? 1 : -1) * trace.byteSizes()[madeBy[slot]];
            }
            lower(floors[site], now[site], parts[row], parts[row]);
        }
        long all = Arrays.stream(now).sum() - Arrays.stream(older).sum();
        List<Leak> leaks = new ArrayList<>();
        for (int site = 0; site < floors.length; site++) {
            long[] floor = floors[site];
            lower(floor, now[site], lastPart[site], PARTS - 1);
            long growth = floor[PARTS - 1] - floor[0];
            int rises = rises(floor, 1);
            boolean isMuch = growth > Math.max(MIN_GROWTH, all / 50)
                    && floor[PARTS - 1] - older[site] > 1.5 * (floor[1] - older[site]);
            if (!sites.get(site).isEmpty()
                    && isMuch
                    && (rises >= MANY_RISES || rises(floor, PARTS - LAST_RISES) == LAST_RISES)) {
                leaks.add(new Leak(sites.get(site), now[site], rises, made[site], freed[site]));
            }
        }
        leaks.sort(Comparator.comparingLong(Leak::byteSize).reversed());
        return leaks;
    }

    /// Returns whether leaks can be found: the recording has call stacks, and enough rows to compare its tenths.
    boolean canFindLeaks() {
        return trace.ops().length >= MIN_ROWS && sites.stream().anyMatch(site -> !site.isEmpty());
    }

    private static void lower(long[] floor, long bytes, int from, int to) {
        for (int part = from; part <= to; part++) {
            floor[part] = Math.min(floor[part], bytes);
        }
    }

    private static int rises(long[] floor, int from) {
        int rises = 0;
        for (int part = from; part < PARTS; part++) {
            rises += floor[part] > floor[part - 1] ? 1 : 0;
        }
        return rises;
    }

    /// Returns the tenth of the time that each row lies in. Pauses as long as a tenth are left out. Without times,
    /// rows take equally long.
    private int[] parts() {
        int rows = trace.ops().length;
        long[] nanos = recording.nanos();
        long pause = (nanos[rows - 1] - nanos[0]) / PARTS;
        long[] worked = new long[rows];
        for (int row = 1; row < rows; row++) {
            long passed = nanos[row] - nanos[row - 1];
            worked[row] = worked[row - 1] + (pause == 0 ? 1 : passed < pause ? Math.max(0, passed) : 0);
        }
        double all = Math.max(1, worked[rows - 1]);
        return Arrays.stream(worked)
                .mapToInt(each -> (int) Math.min(PARTS - 1, PARTS * (each / all)))
                .toArray();
    }
}
