package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

/// Holds threads back until their next row's [dependencies][RowDependencies] have been played and no thread is
/// too many rows behind. A program's threads are ordered by more than its memory: a thread that ran far ahead
/// would have more live at once than the program ever had.
///
/// Each thread publishes its next row. Since a thread plays its rows in order, an earlier row has been played
/// once the next row of its thread comes after it.
///
/// **Progress.** The first unplayed row waits for nothing.
final class RowOrder {
    private static final int DONE = Integer.MAX_VALUE;
    /// Keeps the entries of two threads on separate cache lines.
    private static final int STRIDE = 32;
    private static final int SPINS = 200;
    private static final int YIELDS = 400;
    private static final long PARK_NANOS = 50_000;

    private final int[] threads;
    private final RowDependencies dependencies;
    private final int[][] rows;
    private final int ahead;
    private final AtomicIntegerArray next;
    private volatile boolean stopped;

    /// @param ahead how many rows a thread may be ahead of the slowest; 0 for the order of the trace
    RowOrder(Trace trace, int ahead) {
        this.threads = trace.origins().threads();
        this.dependencies = RowDependencies.of(trace);
        this.rows = rowsByThread(threads, trace.origins().threadCount());
        this.ahead = ahead;
        this.next = new AtomicIntegerArray(STRIDE * rows.length);
    }

    private static int[][] rowsByThread(int[] threads, int threadCount) {
        int[] counts = new int[threadCount];
        for (int thread : threads) {
            counts[thread]++;
        }
        int[][] rows = new int[threadCount][];
        for (int thread = 0; thread < threadCount; thread++) {
            rows[thread] = new int[counts[thread]];
            counts[thread] = 0;
        }
        for (int row = 0; row < threads.length; row++) {
            rows[threads[row]][counts[threads[row]]++] = row;
        }
        return rows;
    }

    /// Prepares for a pass. Called before its threads begin.
    void begin() {
        for (int thread = 0; thread < rows.length; thread++) {
            publish(thread, 0);
        }
    }

    /// Plays all rows of a thread. An error stops the other threads too.
    ///
    /// @throws CancellationException if another thread had an error
    void play(int thread, IntConsumer player) {
        int slowest = 0;
        try {
            for (int i = 0; i < rows[thread].length; i++) {
                int row = rows[thread][i];
                slowest = awaitOthers(row, slowest);
                awaitDependencies(row);
                player.accept(row);
                publish(thread, i + 1);
            }
        } catch (RuntimeException | Error e) {
            stopped = true;
            throw e;
        }
    }

    private void publish(int thread, int played) {
        next.setRelease(STRIDE * thread, played == rows[thread].length ? DONE : rows[thread][played]);
    }

    private int nextOf(int thread) {
        return next.getAcquire(STRIDE * thread);
    }

    /// Waits until no thread is too many rows behind.
    ///
    /// @param slowest the first unplayed row when the caller last looked
    /// @return the first unplayed row now
    private int awaitOthers(int row, int slowest) {
        int known = slowest;
        for (int attempt = 0; known < row - ahead; attempt++) {
            known = DONE;
            for (int thread = 0; thread < rows.length; thread++) {
                known = Math.min(known, nextOf(thread));
            }
            if (known < row - ahead) {
                pause(attempt);
            }
        }
        return known;
    }

    private void awaitDependencies(int row) {
        int end = dependencies.end(row);
        for (int i = dependencies.begin(row); i < end; i++) {
            int needed = dependencies.at(i);
            for (int attempt = 0; nextOf(threads[needed]) <= needed; attempt++) {
                pause(attempt);
            }
        }
    }

    @SuppressWarnings("ThreadPriorityCheck") // Most waits are shorter than waking a parked thread.
    private void pause(int attempt) {
        if (stopped) {
            throw new CancellationException("another thread of the replay failed");
        }
        if (attempt < SPINS) {
            Thread.onSpinWait();
        } else if (attempt < YIELDS) {
            Thread.yield();
        } else {
            LockSupport.parkNanos(PARK_NANOS);
        }
    }
}
