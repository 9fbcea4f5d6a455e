package io.cistern.cli.fit;

import io.cistern.cli.trace.CallStacks.Sites;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Recording.Refusal;
import io.cistern.cli.trace.Trace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// Finds which code holds the memory of a recorded program at its peak.
///
/// A site is the innermost line of the program's own code in a block's call stack.
final class Holders {
    /// The site of blocks that the program freed, but that other streams still use.
    static final String WAITING = "freed, but waiting for another stream (record_stream)";

    private final Recording recording;
    private final Trace trace;
    private final Sites sites;
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
    record Moment(int row, long requestedBytes, List<Holder> holders) {
        /// Returns what the program has then.
        long servedBytes() {
            return holders.stream().mapToLong(Holder::byteSize).sum();
        }
    }

    Holders(Recording recording) {
        this.recording = recording;
        trace = recording.trace();
        recording.refusals().forEach(each -> refusedRows.set(each.row()));
        sites = recording.callStacks().sites();
        sites.names().add(WAITING); // The last one.
    }

    private int site(int row) {
        return sites.numbers()[recording.stacks()[row]];
    }

    /// Returns the site of a block at a moment.
    ///
    /// @param row the row that allocated it
    /// @param now the last row before the moment
    private int site(int row, int now) {
        int since = recording.waitingSince()[row];
        return since > 0 && since <= now ? sites.names().size() - 1 : site(row);
    }

    /// Returns when the program asked for most, requests that were refused included.
    Moment peak() {
        return moment(peakRow());
    }

    /// Returns when the last request was refused; empty if none was.
    Optional<Moment> refused() {
        List<Refusal> refusals = recording.refusals();
        return refusals.isEmpty()
                ? Optional.empty()
                : Optional.of(moment(refusals.getLast().row()));
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
        long[] bytes = new long[sites.names().size()];
        long[] blocks = new long[sites.names().size()];
        long requested = 0;
        for (int row : trace.liveBefore(lastRow + 1)) {
            requested += trace.byteSizes()[row];
            if (!refusedRows.get(row)) {
                bytes[site(row, lastRow)] += trace.byteSizes()[row];
                blocks[site(row, lastRow)]++;
            }
        }
        List<Holder> holders = new ArrayList<>();
        for (int site = 0; site < bytes.length; site++) {
            if (blocks[site] > 0) {
                holders.add(new Holder(sites.names().get(site), bytes[site], blocks[site]));
            }
        }
        holders.sort(Comparator.comparingLong(Holder::byteSize).reversed());
        return new Moment(lastRow, requested, holders);
    }
}
