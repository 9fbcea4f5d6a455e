package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// Which rows of other threads each row of a trace has to come after.
///
/// 1. A use and a free come after the block's allocation, and after its uses before.
/// 2. A wait comes after all earlier rows of both streams that it names, an end after those of its stream.
/// 3. Every row comes after the last wait or end that names its stream.
///
/// So what a stream waits for has been enqueued, and what had to wait is enqueued after. Between waits,
/// threads that share a stream are free. Rows of one thread need nothing: they are played in their order.
///
/// **Invariant.** What a row needs stands before it, so the first row that is not yet played can always be.
final class RowDependencies {
    private static final int NO_ROW = -1;

    private final int[] threads;
    /// By row: where its part of `needed` ends.
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

    /// Those of a trace in which each block has a slot of its own.
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

    /// Where the rows that a row comes after begin in [#at].
    int begin(int row) {
        return row == 0 ? 0 : ends[row - 1];
    }

    /// Where they end.
    int end(int row) {
        return ends[row];
    }

    /// One of them.
    int at(int index) {
        return needed[index];
    }
}
