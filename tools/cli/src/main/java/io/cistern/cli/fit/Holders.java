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
import java.util.stream.IntStream;

/// Finds which code holds the memory of a recorded program: at the peak, at the end, and more and more of it.
///
/// A site is the innermost line of the program's own code in a block's call stack.
final class Holders {
    /// The site of blocks that the program freed, but that other streams still use.
    static final String WAITING = "freed, but waiting for another stream (record_stream)";
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
        sites.add(WAITING); // The last one.
    }

    private int site(int row) {
        return siteOf[recording.stacks()[row]];
    }

    /// Returns the site of a block at a moment.
    ///
    /// @param row the row that allocated it
    /// @param now the last row before the moment
    private int site(int row, int now) {
        int since = recording.waitingSince()[row];
        return since > 0 && since <= now ? sites.size() - 1 : site(row);
    }

    /// Returns when the program asked for most, requests that were refused included.
    Moment peak() {
        return moment(peakRow());
    }

    /// Returns the most bytes that the program had at once, without requests that were refused.
    long servedPeakBytes() {
        return Arrays.stream(liveBytes(false)).max().orElse(0);
    }

    private int peakRow() {
        long[] live = liveBytes(true);
        int at = 0;
        for (int row = 1; row < live.length; row++) {
            at = live[row] > live[at] ? row : at;
        }
        return at;
    }

    /// Returns the live bytes after each row.
    ///
    /// @param refusedToo whether requests that were refused count
    private long[] liveBytes(boolean refusedToo) {
        long[] bytes = new long[trace.slotCount()];
        long[] live = new long[trace.ops().length];
        long now = 0;
        for (int row = 0; row < live.length; row++) {
            int slot = trace.slots()[row];
            if (trace.ops()[row] == Trace.ALLOCATE) {
                bytes[slot] = refusedToo || !refusedRows.get(row) ? trace.byteSizes()[row] : 0;
                now += bytes[slot];
            } else if (trace.ops()[row] == Trace.FREE) {
                now -= bytes[slot];
            }
            live[row] = now;
        }
        return live;
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
                    bytes[site(row, lastRow)] += trace.byteSizes()[row];
                    blocks[site(row, lastRow)]++;
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
    /// Blocks from before the recording that are never freed do not hide growth. A block counts until the
    /// program frees it, whether other streams still use it or not.
    List<Leak> leaks() {
        Growths growths = new Growths();
        int[] parts = parts();
        int rows = trace.ops().length;
        int[] waiting = recording.waitingSince();
        // Lists of the blocks that began to wait before each row.
        int[] firstWaiting = new int[rows + 1];
        int[] nextWaiting = new int[rows];
        Arrays.fill(firstWaiting, -1);
        for (int row = 0; row < rows; row++) {
            if (waiting[row] > 0) {
                nextWaiting[row] = firstWaiting[waiting[row]];
                firstWaiting[waiting[row]] = row;
            }
        }
        int[] madeBy = new int[trace.slotCount()];
        for (int row = 0; row <= rows; row++) {
            int part = row < rows ? parts[row] : PARTS - 1;
            for (int made = firstWaiting[row]; made >= 0; made = nextWaiting[made]) {
                growths.change(made, false, part);
            }
            int slot = row < rows ? trace.slots()[row] : 0;
            if (row < rows && trace.ops()[row] == Trace.ALLOCATE) {
                madeBy[slot] = row;
                growths.change(row, true, part);
            } else if (row < rows && trace.ops()[row] == Trace.FREE && waiting[madeBy[slot]] == 0) {
                growths.change(madeBy[slot], false, part);
            }
        }
        return growths.leaks();
    }

    /// The memory of each site over time.
    private final class Growths {
        private final long[] now = new long[sites.size()];
        /// The live bytes of blocks from before the recording.
        private final long[] older = new long[sites.size()];
        private final long[] made = new long[sites.size()];
        private final long[] freed = new long[sites.size()];
        private final int[] lastPart = new int[sites.size()];
        /// The least of each part.
        private final long[][] floors = new long[sites.size()][PARTS];

        Growths() {
            for (long[] floor : floors) {
                Arrays.fill(floor, Long.MAX_VALUE);
            }
        }

        /// @param row the row that allocated the block
        void change(int row, boolean isMade, int part) {
            if (refusedRows.get(row)) {
                return;
            }
            int site = site(row);
            long change = (isMade ? 1 : -1) * trace.byteSizes()[row];
            lower(floors[site], now[site], lastPart[site], part);
            lastPart[site] = part;
            now[site] += change;
            made[site] += isMade ? 1 : 0;
            freed[site] += isMade ? 0 : 1;
            older[site] += row < recording.recorder().olderBlocks() ? change : 0;
            lower(floors[site], now[site], part, part);
        }

        List<Leak> leaks() {
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
    }

    /// Returns why leaks can't be found, for people; empty if they can.
    String whyNoLeaks() {
        if (siteOf.length < 2) {
            return "no call stacks";
        }
        if (trace.ops().length < MIN_ROWS) {
            return "too few events";
        }
        long frees = IntStream.range(0, trace.ops().length)
                .filter(row -> trace.ops()[row] == Trace.FREE || recording.waitingSince()[row] > 0)
                .count();
        return frees > refusedRows.cardinality() ? "" : "no block was freed, as while a model loads";
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
