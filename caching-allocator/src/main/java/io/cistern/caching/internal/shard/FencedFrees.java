package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.ReservedList;
import io.cistern.caching.internal.growth.GrowingShard;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import java.util.Arrays;

/// Blocks of a shard that were used on other streams last and wait until those have got past the free.
///
/// 1. A free only puts the block on the open list, with the stream of the free; nothing is recorded, and
/// nothing is needed of the Java heap.
/// 2. The next allocation of the shard *closes* it: the blocks go onto lists, one for all that wait for the
/// same
///    streams, more than one if [uses][io.cistern.caching.internal.order.RecordedUses] were recorded; each
/// stream
///    gets a fence a list, recorded later than all frees in it and therefore covering them.
/// 3. Later allocations poll the fences, ever less often while none has passed. A list whose fences have all
/// passed is free.
///
/// The open list is guarded by the shard's lock, the closed ones by its driver lock, so that recording and
/// polling hold no short lock. Lists are linked through [Blocks#listNext].
final class FencedFrees {
    /// Most allocations between two polls.
    private static final int LONGEST_PAUSE = 64;

    private final GrowingShard memory;
    private final Blocks blocks;
    /// The block freed last, until all are turned round.
    private int openHead = Blocks.NONE;

    private long[] fence = new long[2];
    /// The other streams of a list, mostly none, or their fences.
    private long[][] otherFences = new long[2][];
    private int[] closedHead = new int[2];
    private int closedCount;
    /// The first so many of them have fences, the others still the streams. `0 ≤ recordedCount ≤ closedCount`
    private int recordedCount;

    /// Threads that wait for fences; guarded by the driver lock.
    private final ReservedList<FenceWait> waits = new ReservedList<>();

    /// Blocks that wait; guarded by the shard's lock.
    private int waiting;

    private int untilPoll;
    private int pause = 1;

    FencedFrees(GrowingShard memory) {
        this.memory = memory;
        this.blocks = memory.heap.blocks;
    }

    /// Adds a block that was taken back. Under the shard's lock.
    ///
    /// @param stream of the free
    void add(int block, long stream) {
        memory.counters.waits(blocks.byteSize[block]);
        blocks.state[block] = Blocks.FENCED;
        blocks.gapBytes[block] = stream;
        blocks.listNext[block] = openHead;
        openHead = block;
        waiting++;
        untilPoll = 0;
        memory.reserved.announceDeferred(blocks.address[block], blocks.byteSize[block]);
    }

    /// Whether anything waits. Under the shard's lock.
    boolean isEmpty() {
        return waiting == 0;
    }

    /// Whether an allocation should poll now. Under the shard's lock.
    boolean due() {
        return waiting != 0 && --untilPoll < 0;
    }

    /// Closes the open list, and records fences for what has none yet. Under the driver lock alone.
    ///
    /// @param own the shard's stream, whose later work comes after its own frees; [Fences#PASSED] once it has
    /// ended
    void recordAll(Fences fences, long own) {
        memory.lock.lock();
        try {
            turnRound();
            while (openHead != Blocks.NONE) {
                closeFirst(openHead, own, fences.uses);
            }
        } finally {
            memory.lock.unlock();
        }
        record(fences);
    }

    /// Has the open list begin with the block that was freed first.
    private void turnRound() {
        int turned = Blocks.NONE;
        for (int block = openHead; block != Blocks.NONE; ) {
            int next = blocks.listNext[block];
            blocks.listNext[block] = turned;
            turned = block;
            block = next;
        }
        openHead = turned;
    }

    /// What it needs of the Java heap comes first: without, the block stays where it is, with the uses of it.
    private void closeFirst(int block, long own, RecordedUses uses) {
        long lastStream = blocks.gapBytes[block];
        long address = blocks.address[block];
        long[] others = RecordedUses.without(uses.of(address), own);
        if (lastStream == own && others.length == 0) {
            uses.take(address);
            openHead = blocks.listNext[block];
            waiting--;
            free(block);
            return;
        }
        long first = lastStream == own ? others[0] : lastStream;
        long[] rest = RecordedUses.without(others, first);
        reserve();
        uses.take(address);
        close(first, rest);
    }

    private void free(int block) {
        memory.counters.waited(blocks.byteSize[block]);
        memory.reserved.announceCompleted(blocks.address[block], blocks.byteSize[block]);
        memory.heap.makeFree(block);
    }

    private void reserve() {
        if (closedCount == fence.length) {
            closedHead = Arrays.copyOf(closedHead, closedCount * 2);
            otherFences = Arrays.copyOf(otherFences, closedCount * 2);
            fence = Arrays.copyOf(fence, closedCount * 2); // last: its length is the capacity
        }
    }

    /// Moves the first block of the open list to the closed list of the streams that it waits for, for which
    /// there is [room][#reserve]. Such a list still holds streams where the fences will be.
    ///
    /// @param others further streams to wait for, in ascending order
    private void close(long stream, long[] others) {
        int list = recordedCount;
        while (list < closedCount && !(fence[list] == stream && Arrays.equals(otherFences[list], others))) {
            list++;
        }
        if (list == closedCount) {
            fence[closedCount] = stream; // until the fence takes its place
            otherFences[closedCount] = others;
            closedHead[closedCount++] = Blocks.NONE;
        }
        int block = openHead;
        openHead = blocks.listNext[block];
        blocks.listNext[block] = closedHead[list];
        closedHead[list] = block;
    }

    /// Records the fences of closed lists that have none.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the next call goes on there
    private void record(Fences fences) {
        while (recordedCount < closedCount) {
            long[] streams = otherFences[recordedCount];
            long[] others = streams.length == 0 ? streams : new long[streams.length];
            Arrays.fill(others, Fences.PASSED);
            long first = fences.record(fence[recordedCount]);
            try {
                for (int i = 0; i < streams.length; i++) {
                    others[i] = fences.record(streams[i]);
                }
            } catch (RuntimeException | Error refusal) {
                fences.release(first);
                for (long other : others) {
                    fences.release(other);
                }
                throw refusal;
            }
            fence[recordedCount] = first;
            otherFences[recordedCount++] = others;
        }
    }

    /// Frees the blocks whose fences have passed. Under the driver lock alone.
    ///
    /// @return bytes freed
    long settle(Fences fences) {
        poll(fences);
        memory.lock.lock();
        try {
            int before = waiting;
            long bytes = 0;
            for (int head = takePassed(); head != Blocks.NONE; head = takePassed()) {
                bytes += freeList(head);
            }
            pause = waiting < before ? 1 : Math.min(pause * 2, LONGEST_PAUSE);
            untilPoll = pause;
            return bytes;
        } finally {
            memory.lock.unlock();
        }
    }

    private long freeList(int head) {
        long bytes = 0;
        for (int block = head; block != Blocks.NONE; ) {
            int next = blocks.listNext[block];
            bytes += blocks.byteSize[block];
            waiting--;
            free(block);
            block = next;
        }
        return bytes;
    }

    /// Asks for every fence; those that passed are released and become [Fences#PASSED].
    private void poll(Fences fences) {
        for (int i = 0; i < recordedCount; i++) {
            fence[i] = polled(fences, fence[i]);
            for (int j = 0; j < otherFences[i].length; j++) {
                otherFences[i][j] = polled(fences, otherFences[i][j]);
            }
        }
    }

    private long polled(Fences fences, long asked) {
        if (asked == Fences.PASSED || !fences.passed(asked)) {
            return asked;
        }
        release(fences, asked);
        return Fences.PASSED;
    }

    /// Unless somebody waits for it, who does it then.
    private void release(Fences fences, long passed) {
        for (int i = 0; i < waits.size(); i++) {
            if (waits.get(i).takeOver(passed)) {
                return;
            }
        }
        fences.release(passed);
    }

    /// Begins to wait for all fences that are recorded. Under the driver lock alone.
    FenceWait beginWait() {
        long[] asked = new long[0];
        for (int i = 0; i < recordedCount; i++) {
            asked = with(asked, fence[i]);
            for (long other : otherFences[i]) {
                asked = with(asked, other);
            }
        }
        waits.reserve(1);
        FenceWait wait = new FenceWait(asked);
        waits.add(wait);
        return wait;
    }

    private static long[] with(long[] fences, long added) {
        if (added == Fences.PASSED) {
            return fences;
        }
        long[] more = Arrays.copyOf(fences, fences.length + 1);
        more[fences.length] = added;
        return more;
    }

    /// Ends that, whether they have passed or not. Under the driver lock alone.
    void endWait(FenceWait wait, Fences fences) {
        waits.remove(wait);
        for (int i = 0; i < wait.size(); i++) {
            if (wait.isMine(i)) {
                release(fences, wait.fence(i));
            }
        }
    }

    /// Takes out a list whose fences have passed.
    ///
    /// @return the first block of the list, or [Blocks#NONE] if none has passed
    private int takePassed() {
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
}
