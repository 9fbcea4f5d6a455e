package io.cistern.cli.trace;

import io.cistern.cli.trace.Recorder.Refused;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/// A recorded program: its trace, when and where each row happened, and what its own allocator did.
///
/// Requests that were refused during the recording are made again: each is an allocation at its place in the trace,
/// which is freed at once.
///
/// @param nanos the time of each row, since the recording began
/// @param stacks the number of each row's call stack
/// @param waitingSince for each allocation whose block the program freed while another stream still used it,
///     how many rows came before; else 0
/// @param refusals the requests that were refused, in the order of their rows
/// @param ordinals the ordinals of the trace's devices
@SuppressWarnings("ArrayRecordComponent") // As in the trace.
public record Recording(
        Trace trace,
        long[] nanos,
        int[] stacks,
        int[] waitingSince,
        CallStacks callStacks,
        List<Refusal> refusals,
        long[] handles,
        long[] ordinals,
        Recorder recorder) {
    /// A request that was refused.
    ///
    /// @param row the row that allocates it now
    /// @param then what was there then
    public record Refusal(int row, long byteSize, Refused then) {}

    /// Returns how many allocations and frees were recorded: without refused requests, and without the allocations of
    /// older blocks.
    public int recordedOperations() {
        return trace.operations() - 2 * refusals.size() - Math.toIntExact(recorder.olderBlocks());
    }

    /// Returns the recordings of the single devices by their ordinals. A program that uses blocks on devices other than
    /// their own is not split: all devices count as one.
    public List<Recording> byDevice() {
        if (ordinals.length == 1) {
            return List.of(this);
        }
        return trace.origins().mixed()
                ? List.of(new Recording(
                        trace.onOneDevice(),
                        nanos,
                        stacks,
                        waitingSince,
                        callStacks,
                        refusals,
                        handles,
                        ordinals,
                        recorder))
                : IntStream.range(0, ordinals.length)
                        .mapToObj(this::ofDevice)
                        .sorted(Comparator.comparingLong(each -> each.ordinals[0]))
                        .toList();
    }

    private Recording ofDevice(int device) {
        int[] devices = trace.origins().devices();
        int[] rows = IntStream.range(0, trace.ops().length)
                .filter(row -> devices[trace.streams()[row]] == device)
                .toArray();
        int[] newRows = new int[trace.ops().length + 1];
        for (int row = 0; row < trace.ops().length; row++) {
            newRows[row + 1] = newRows[row] + (devices[trace.streams()[row]] == device ? 1 : 0);
        }
        return new Recording(
                trace.ofRows(rows, trace.origins().devicePeakBytes()[device]),
                IntStream.of(rows).mapToLong(row -> nanos[row]).toArray(),
                IntStream.of(rows).map(row -> stacks[row]).toArray(),
                IntStream.of(rows).map(row -> newRows[waitingSince[row]]).toArray(),
                callStacks,
                refusals.stream()
                        .filter(each -> devices[trace.streams()[each.row]] == device)
                        .map(each -> new Refusal(newRows[each.row], each.byteSize, each.then))
                        .toList(),
                handles,
                new long[] {ordinals[device]},
                recorder.withOlderBlocks(olderBlocks(rows)));
    }

    /// Returns how many of some rows allocate blocks from before the recording: those rows come first in the trace.
    private long olderBlocks(int[] rows) {
        return IntStream.of(rows).filter(row -> row < recorder.olderBlocks()).count();
    }
}
