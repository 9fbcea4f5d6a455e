package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// The rows of other threads that each row of a trace must follow.
///
/// 1. A use or free follows the block's allocation and its earlier uses.
/// 2. A wait follows all earlier rows of both streams that it names; an end follows those of its stream.
/// 3. Every row follows the last wait or end that names its stream.
/// 4. A trim follows all earlier rows of its device, and all later ones follow it.
///
/// So a wait is enqueued after the work that it waits for, and before the work that must wait. Between waits,
/// threads that share a stream are free. Rows of one thread need no entries, because they are played in order.
///
/// **Invariant.** A row depends only on rows before it, so the first unplayed row can always be played.
final class RowDependencies {
    private static final int NO_ROW = -1;

    private final int[] threads;
    /// By stream.
    private final int[] devices;
    /// By row: the end of its part of `needed`.
    private final int[] ends;
    private int[] needed = new int[1 << 8];
    private int count;

    // By slot, by stream.
    private final int[] lastOfBlock;
    private final int[] lastBarrier;
    /// By stream: the last row of each thread after the last barrier.
    private final Map<Integer, Map<Integer, Integer>> sinceBarrier = new HashMap<>();
    /// By device.
    private final int[] lastTrim;
    /// By device: the last row of each thread after the last trim.
    private final Map<Integer, Map<Integer, Integer>> sinceTrim = new HashMap<>();

    private RowDependencies(Trace trace) {
        threads = trace.origins().threads();
        devices = trace.origins().devices();
        ends = new int[threads.length];
        lastOfBlock = filled(trace.slotCount());
        lastBarrier = filled(trace.streamCount());
        lastTrim = filled(trace.origins().deviceCount());
    }

    private static int[] filled(int length) {
        int[] rows = new int[length];
        Arrays.fill(rows, NO_ROW);
        return rows;
    }

    /// Finds the dependencies of a trace in which each block has its own slot.
    static RowDependencies of(Trace trace) {
        RowDependencies dependencies = new RowDependencies(trace);
        for (int row = 0; row < trace.ops().length; row++) {
            dependencies.add(row, trace.ops()[row], trace.slots()[row], trace.streams()[row]);
            dependencies.ends[row] = dependencies.count;
        }
        return dependencies;
    }

    private void add(int row, byte op, int slot, int stream) {
        Map<Integer, Integer> since = sinceTrim.computeIfAbsent(devices[stream], _ -> new HashMap<>());
        if (since.put(threads[row], row) == null) {
            need(row, lastTrim[devices[stream]]);
        }
        switch (op) {
            case Trace.TRIM -> {
                since.values().forEach(earlier -> need(row, earlier));
                since.clear();
                lastTrim[devices[stream]] = row;
            }
            case Trace.WAIT -> {
                barrier(row, stream);
                barrier(row, slot);
            }
            case Trace.END -> barrier(row, stream);
            default -> {
                need(row, lastBarrier[stream]);
                need(row, lastOfBlock[slot]);
                lastOfBlock[slot] = row;
                sinceBarrier.computeIfAbsent(stream, _ -> new HashMap<>()).put(threads[row], row);
            }
        }
    }

    private void barrier(int row, int stream) {
        need(row, lastBarrier[stream]);
        Map<Integer, Integer> since = sinceBarrier.remove(stream);
        if (since != null) {
            since.values().forEach(earlier -> need(row, earlier));
        }
        lastBarrier[stream] = row;
    }

    private void need(int row, int earlier) {
        boolean known = count > begin(row) && needed[count - 1] == earlier;
        if (earlier == NO_ROW || known || threads[earlier] == threads[row]) {
            return;
        }
        if (count == needed.length) {
            needed = Arrays.copyOf(needed, 2 * count);
        }
        needed[count++] = earlier;
    }

    /// Returns the index of a row's first dependency in [#at].
    int begin(int row) {
        return row == 0 ? 0 : ends[row - 1];
    }

    int end(int row) {
        return ends[row];
    }

    int at(int index) {
        return needed[index];
    }
}
