package io.cistern.cli.trace;

import io.cistern.cli.trace.CallStacks.Sites;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// The sites of a recorded program that look like leaks: their live bytes grow. The minimum of each tenth of the
/// recorded
/// allocations and frees is above that of the tenth before, in nearly all tenths or in the last half, and they still
/// grow in
/// the second half of the time.
///
/// Blocks from before the recording that are never freed do not hide growth. A block counts until the program frees
/// it, whether other streams still use it or not.
///
/// @param unknown why leaks can't be found, for people; empty if they can
/// @param found the leaks, those that hold most first
public record Leaks(String unknown, List<Leak> found) {
    /// A site whose live bytes only grow.
    ///
    /// @param byteSize its live bytes at the end
    /// @param rises in how many parts of ten they were more than in the part before
    public record Leak(String site, long byteSize, int rises, long made, long freed) {}

    public static Leaks of(Recording recording) {
        Search search = new Search(recording);
        String unknown = search.whyUnknown();
        return new Leaks(unknown, unknown.isEmpty() ? search.leaks() : List.of());
    }

    private static final class Search {
        /// Equal parts of the recording, for growth.
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
            sites = recording.callStacks().sites();
            recording.refusals().forEach(each -> refusedRows.set(each.row()));
        }

        private int site(int row) {
            return sites.numbers()[recording.stacks()[row]];
        }

        private boolean isAllocationWithSite(int row) {
            return trace.ops()[row] == Trace.ALLOCATE && site(row) != 0 && !refusedRows.get(row);
        }

        String whyUnknown() {
            if (IntStream.range(0, trace.ops().length).noneMatch(this::isAllocationWithSite)) {
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
            int half = secondHalf();
            for (int row = 0; row <= rows; row++) {
                if (row == half) {
                    growths.halfTime();
                }
                int part = part(row);
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

        private final class Growths {
            private final long[] now = new long[sites.names().size()];
            private long[] atHalf = new long[sites.names().size()];
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

            void halfTime() {
                atHalf = now.clone();
            }

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
                            && now[site] - atHalf[site] > (now[site] - older[site]) / 10
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

        /// Returns the first row in the second half of the time; −1 if the rows have no times.
        private int secondHalf() {
            long[] nanos = recording.nanos();
            long half = nanos[0] + (nanos[nanos.length - 1] - nanos[0]) / 2;
            return IntStream.range(0, nanos.length)
                    .filter(row -> nanos[row] > half)
                    .findFirst()
                    .orElse(-1);
        }

        /// Returns which tenth of the recorded allocations and frees a row lies in. Not of the time, most of
        /// which may pass before a program's first step or in pauses.
        private int part(int row) {
            long older = recording.recorder().olderBlocks();
            long recorded = Math.max(1, trace.ops().length - older);
            return (int) (Math.max(0L, Math.min(row, trace.ops().length - 1) - older) * PARTS / recorded);
        }
    }
}
