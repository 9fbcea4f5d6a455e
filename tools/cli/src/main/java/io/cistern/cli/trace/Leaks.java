package io.cistern.cli.trace;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// The sites of a recorded program that look like leaks: their live bytes only grow. The minimum of each tenth of the
/// time is above that of the tenth before, in nearly all tenths or in the last half.
///
/// Blocks from before the recording that are never freed do not hide growth. A block counts until the program frees
/// it, whether other streams still use it or not.
///
/// @param unknown why leaks can't be found, for people; empty if they can
/// @param found the leaks, those that hold most first
/// @param workedNanos the time whose tenths were compared: that of the recording without pauses as long as a tenth
/// @param recordedNanos the time from the first row to the last
public record Leaks(String unknown, List<Leak> found, long workedNanos, long recordedNanos) {
    /// A site whose live bytes only grow.
    ///
    /// @param byteSize its live bytes at the end
    /// @param rises in how many parts of ten they were more than in the part before
    /// @param made its allocations
    /// @param freed those that were freed
    public record Leak(String site, long byteSize, int rises, long made, long freed) {}

    /// Looks for the leaks of a program on one device.
    public static Leaks of(Recording recording) {
        Search search = new Search(recording);
        String unknown = search.whyUnknown();
        long[] nanos = recording.nanos();
        return new Leaks(
                unknown,
                unknown.isEmpty() ? search.leaks() : List.of(),
                search.workedNanos(),
                nanos[nanos.length - 1] - nanos[0]);
    }

    /// The search in one recording.
    private static final class Search {
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
        private final Sites sites;
        private final BitSet refusedRows = new BitSet();

        Search(Recording recording) {
            this.recording = recording;
            trace = recording.trace();
            sites = Sites.of(recording.callStacks());
            recording.refusals().forEach(each -> refusedRows.set(each.row()));
        }

        private int site(int row) {
            return sites.numbers()[recording.stacks()[row]];
        }

        String whyUnknown() {
            if (sites.numbers().length < 2) {
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
            private final long[] now = new long[sites.names().size()];
            /// The live bytes of blocks from before the recording.
            private final long[] older = new long[sites.names().size()];
            private final long[] made = new long[sites.names().size()];
            private final long[] freed = new long[sites.names().size()];
            private final int[] lastPart = new int[sites.names().size()];
            /// The least of each part.
            private final long[][] floors = new long[sites.names().size()][PARTS];

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
                    if (!sites.names().get(site).isEmpty()
                            && isMuch
                            && (rises >= MANY_RISES || rises(floor, PARTS - LAST_RISES) == LAST_RISES)) {
                        leaks.add(new Leak(sites.names().get(site), now[site], rises, made[site], freed[site]));
                    }
                }
                leaks.sort(Comparator.comparingLong(Leak::byteSize).reversed());
                return leaks;
            }
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

        /// Returns how much of the time had passed at each row, without pauses as long as a tenth. Without times, all
        /// rows count as equally long.
        private long[] worked() {
            int rows = trace.ops().length;
            long[] nanos = recording.nanos();
            long pause = (nanos[rows - 1] - nanos[0]) / PARTS;
            long[] worked = new long[rows];
            for (int row = 1; row < rows; row++) {
                long passed = nanos[row] - nanos[row - 1];
                worked[row] = worked[row - 1] + (pause == 0 ? 1 : passed < pause ? Math.max(0, passed) : 0);
            }
            return worked;
        }

        /// Returns the time without pauses.
        long workedNanos() {
            long[] worked = worked();
            return worked[worked.length - 1];
        }

        /// Returns the tenth of that time that each row lies in.
        private int[] parts() {
            long[] worked = worked();
            double all = Math.max(1, worked[worked.length - 1]);
            return Arrays.stream(worked)
                    .mapToInt(each -> (int) Math.min(PARTS - 1, PARTS * (each / all)))
                    .toArray();
        }
    }
}
