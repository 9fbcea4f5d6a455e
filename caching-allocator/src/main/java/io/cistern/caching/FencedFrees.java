package io.cistern.caching;

import java.util.Arrays;

/// Blocks of a shard that were used on other streams last and wait until those have got past the free.
///
/// 1. A free only puts the block on the open list of the streams that it waits for: one, or more if
///    [uses][RecordedUses] were recorded; nothing is recorded on them.
/// 2. The next allocation of the shard *closes* the lists: one fence a stream, recorded later than all frees in its
///    list and therefore covering them.
/// 3. Later allocations poll the fences, ever less often while none has passed. A list whose fences have all passed
///    is free.
///
/// The open lists are guarded by the shard's lock, the closed ones by its driver lock, so that recording and
/// polling hold no short lock. Lists are linked through [Blocks#listNext].
final class FencedFrees {
    /// Most allocations between two polls.
    private static final int LONGEST_PAUSE = 64;

    private final Blocks blocks;
    private long[] openStream = new long[2];
    /// The other streams of a list, mostly none.
    private long[][] openOthers = new long[2][];
    private int[] openHead = new int[2];
    private int openCount;

    private long[] fence = new long[2];
    private long[][] otherFences = new long[2][];
    private int[] closedHead = new int[2];
    private int closedCount;
    /// The first so many of them have fences, the others still the streams. `0 ≤ recordedCount ≤ closedCount`
    private int recordedCount;

    /// Blocks that wait; guarded by the shard's lock.
    private int waiting;

    private int untilPoll;
    private int pause = 1;

    FencedFrees(Blocks blocks) {
        this.blocks = blocks;
    }

    /// Adds a block in state [Blocks#FENCED]. Under the shard's lock.
    ///
    /// @param others further streams to wait for, in ascending order
    void add(int block, long stream, long[] others) {
        int list = 0;
        while (list < openCount && !(openStream[list] == stream && Arrays.equals(openOthers[list], others))) {
            list++;
        }
        if (list == openCount) {
            open(stream, others);
        }
        blocks.listNext[block] = openHead[list];
        openHead[list] = block;
        waiting++;
        untilPoll = 0;
    }

    private void open(long stream, long[] others) {
        if (openCount == openStream.length) {
            openStream = Arrays.copyOf(openStream, openCount * 2);
            openOthers = Arrays.copyOf(openOthers, openCount * 2);
            openHead = Arrays.copyOf(openHead, openCount * 2);
        }
        openStream[openCount] = stream;
        openOthers[openCount] = others;
        openHead[openCount++] = Blocks.NONE;
    }

    /// Whether anything waits. Under the shard's lock.
    boolean isEmpty() {
        return waiting == 0;
    }

    /// Whether an allocation should poll now. Under the shard's lock.
    boolean due() {
        return waiting != 0 && --untilPoll < 0;
    }

    /// Moves the open lists to the closed ones, which still hold streams where the fences will be. Under both
    /// locks.
    void close() {
        int moved = openCount;
        if (closedCount + moved > fence.length) {
            fence = Arrays.copyOf(fence, closedCount + moved + 2);
            otherFences = Arrays.copyOf(otherFences, closedCount + moved + 2);
            closedHead = Arrays.copyOf(closedHead, closedCount + moved + 2);
        }
        for (int i = 0; i < moved; i++) {
            fence[closedCount] = openStream[i]; // until the fence takes its place
            otherFences[closedCount] = openOthers[i];
            closedHead[closedCount++] = openHead[i];
        }
        openCount = 0;
    }

    /// Records the fences of closed lists that have none. Under the driver lock alone.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the next call goes on there
    void record(Fences fences) {
        while (recordedCount < closedCount) {
            long[] streams = otherFences[recordedCount];
            long[] others = new long[streams.length];
            Arrays.fill(others, Fences.PASSED);
            long first = fences.record(fence[recordedCount]);
            try {
                for (int i = 0; i < streams.length; i++) {
                    others[i] = fences.record(streams[i]);
                }
            } catch (RuntimeException | Error refusal) {
                fences.release(first);
                Arrays.stream(others).forEach(fences::release);
                throw refusal;
            }
            fence[recordedCount] = first;
            otherFences[recordedCount++] = others;
        }
    }

    /// Asks or waits for every fence; those that passed are released and become [Fences#PASSED]. Under the
    /// driver lock alone.
    void poll(Fences fences, boolean wait) {
        for (int i = 0; i < recordedCount; i++) {
            fence[i] = polled(fences, fence[i], wait);
            for (int j = 0; j < otherFences[i].length; j++) {
                otherFences[i][j] = polled(fences, otherFences[i][j], wait);
            }
        }
    }

    private static long polled(Fences fences, long asked, boolean wait) {
        if (wait ? fences.await(asked) : fences.passed(asked)) {
            fences.release(asked);
            return Fences.PASSED;
        }
        return asked;
    }

    /// Takes out a list whose fences have passed. Under both locks.
    ///
    /// @return the first block of the list, or [Blocks#NONE] if none has passed
    int takePassed() {
        for (int i = 0; i < recordedCount; i++) {
            if (hasPassed(i)) {
                int head = closedHead[i];
                move(--recordedCount, i);
                move(--closedCount, recordedCount);
                return head;
            }
        }
        return Blocks.NONE;
    }

    private void move(int from, int to) {
        fence[to] = fence[from];
        otherFences[to] = otherFences[from];
        closedHead[to] = closedHead[from];
    }

    private boolean hasPassed(int list) {
        boolean passed = fence[list] == Fences.PASSED;
        for (long other : otherFences[list]) {
            passed &= other == Fences.PASSED;
        }
        return passed;
    }

    /// Notes how a poll went. Under the shard's lock.
    void polled(int freed) {
        waiting -= freed;
        pause = freed > 0 ? 1 : Math.min(pause * 2, LONGEST_PAUSE);
        untilPoll = pause;
    }
}
