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
///
/// So a wait is enqueued after the work that it waits for, and before the work that must wait. Between waits,
/// threads that share a stream are free. Rows of one thread need no entries, because they are played in order.
///
/// **Invariant.** A row depends only on rows before it, so the first unplayed row can always be played.
final class RowDependencies {
    private static final int NO_ROW = -1;

    private final int[] threads;
    /// By row: the end of its part of `needed`.
    private final int[] ends;
    private int[] needed = new int[1 << 8];
    private int count;

    // By slot, by stream.
    private final int[] lastOfBlock;
    private final int[] lastBarrier;
    /// By stream: the last row of each thread after the last barrier.
    private final Map<Integer, Map<Integer, Integer>> sinceBarrier = new HashMap<>();

    private RowDependencies(Trace trace) {
        threads = trace.origins().threads();
        ends = new int[threads.length];
        lastOfBlock = filled(trace.slotCount());
        lastBarrier = filled(trace.streamCount());
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
        switch (op) {
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

    /// Returns the index after a row's last dependency.
    int end(int row) {
        return ends[row];
    }

    /// Returns the row at an index.
    int at(int index) {
        return needed[index];
    }
}
