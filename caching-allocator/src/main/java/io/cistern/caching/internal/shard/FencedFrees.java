package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.base.ShortLock;
import io.cistern.caching.internal.heap.Blocks;
import io.cistern.caching.internal.order.Fences;
import io.cistern.caching.internal.order.RecordedUses;
import java.util.ArrayList;
import java.util.Arrays;

/// Blocks of a shard that were last used on other streams; they wait until these streams have passed the free.
///
/// 1. A free only puts the block on the open list, with the stream of the free. It records no fence and needs
///    no Java heap.
/// 2. The next allocation from the shard *closes* the open list: blocks that wait for the same streams go onto one
///    closed list. (A block waits for several streams if [uses][io.cistern.caching.internal.order.RecordedUses] were
///    recorded.) Each stream gets a fence for the list, recorded later than all frees in it, so the fence covers them.
/// 3. Later allocations poll the fences, less and less often while none has passed. The blocks of a list are
///    freed when all its fences have passed.
///
/// The shard's lock guards the open list. Its driver lock guards the closed lists, so that recording and
/// polling hold no short lock. Lists are linked through [Blocks#listNext].
final class FencedFrees {
    /// The fences for which one thread waits on the host while it holds no lock. If other threads find meanwhile
    /// that fences have passed, the waiting thread releases these after its wait.
    ///
    /// Guarded by the driver lock.
    static final class Wait {
        final long[] fences;
        /// Which of the fences this wait has to release.
        final boolean[] mine;

        /// @param fences fences other than [Fences#PASSED]
        Wait(long[] fences) {
            this.fences = fences;
            this.mine = new boolean[fences.length];
        }

        /// Waits for all fences, except those that can't be waited for while streams are captured. The caller
        /// holds no lock.
        void await(Fences all) {
            for (long fence : fences) {
                all.await(fence);
            }
        }

        /// Takes over the release of a fence that no list needs any more.
        ///
        /// @return false if this thread does not wait for that fence
        boolean takeOver(long fence) {
            for (int i = 0; i < fences.length; i++) {
                if (fences[i] == fence) {
                    mine[i] = true;
                    return true;
                }
            }
            return false;
        }
    }

    /// The most allocations between two polls.
    private static final int LONGEST_PAUSE = 64;

    private final Shard shard;
    private final Blocks blocks;
    /// The block that was freed last; while the list is being closed, the one that was freed first.
    private int openHead = Blocks.NONE;

    private long[] fence = new long[2];
    /// The other streams of a list (mostly none); once recorded, their fences.
    private long[][] otherFences = new long[2][];
    private int[] closedHead = new int[2];
    private int closedCount;
    /// The number of lists that have fences; the others still hold streams. `0 ≤ recordedCount ≤ closedCount`
    private int recordedCount;

    /// The threads that wait for fences; guarded by the driver lock.
    private final ArrayList<Wait> waits = new ArrayList<>(0);

    /// The number of blocks that wait; guarded by the shard's lock, and read without it as a guess.
    int waiting;

    private int untilPoll;
    private int pause = 1;

    FencedFrees(Shard shard) {
        this.shard = shard;
        this.blocks = shard.heap.blocks;
    }

    /// Adds a block that a caller freed. The caller holds the shard's lock.
    ///
    /// @param stream the stream of the free
    void add(int block, long stream) {
        shard.counters.waits(blocks.byteSize[block]);
        blocks.state[block] = Blocks.FENCED;
        blocks.runBytes[block] = stream;
        blocks.listNext[block] = openHead;
        openHead = block;
        waiting++;
        untilPoll = 0;
        shard.ofDevice.sink.freeDeferred(shard.ofDevice.device, blocks.address[block], blocks.byteSize[block]);
    }

    /// Whether an allocation should poll now. The caller holds the shard's lock.
    boolean due() {
        return waiting != 0 && --untilPoll < 0;
    }

    /// Closes the open list, and records fences for lists that have none. The caller holds the driver lock only.
    ///
    /// @param own the shard's stream, whose later work comes after its own frees; [Fences#PASSED] once it has ended
    void recordAll(Fences fences, long own) {
        try (ShortLock _ = shard.lock.hold()) {
            turnRound();
            while (openHead != Blocks.NONE) {
                closeFirst(openHead, own, fences.uses);
            }
        }
        record(fences);
    }

    /// Reverses the open list, so that it begins with the block that was freed first.
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

    /// Moves the first open block to a closed list, or frees it if only the shard's stream used it. Java
    /// heap is reserved first: without it, the block keeps its place and its recorded uses.
    private void closeFirst(int block, long own, RecordedUses uses) {
        long lastStream = blocks.runBytes[block];
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
        shard.counters.waited(blocks.byteSize[block]);
        shard.ofDevice.sink.freeCompleted(shard.ofDevice.device, blocks.address[block], blocks.byteSize[block]);
        shard.heap.makeFree(block);
    }

    private void reserve() {
        if (closedCount == fence.length) {
            closedHead = Arrays.copyOf(closedHead, closedCount * 2);
            otherFences = Arrays.copyOf(otherFences, closedCount * 2);
            fence = Arrays.copyOf(fence, closedCount * 2); // last: its length is the capacity
        }
    }

    /// Moves the first open block to the closed list of the streams for which it waits; there is [room][#reserve] for a
    /// new list. Until its fences are recorded, such a list holds streams in their place.
    ///
    /// @param others the further streams to wait for, in ascending order
    private void close(long stream, long[] others) {
        int list = recordedCount;
        while (list < closedCount && !(fence[list] == stream && Arrays.equals(otherFences[list], others))) {
            list++;
        }
        if (list == closedCount) {
            fence[closedCount] = stream; // until the fence replaces it
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
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the next call continues with the same list
    private void record(Fences fences) {
        while (recordedCount < closedCount) {
            long[] streams = otherFences[recordedCount];
            long[] others = streams.length == 0 ? streams : new long[streams.length];
            Arrays.fill(others, Fences.PASSED);
            long first = fences.recordFree(fence[recordedCount]);
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

    /// Frees the blocks whose fences have passed. The caller holds the driver lock only.
    ///
    /// @return bytes freed
    long settle(Fences fences) {
        poll(fences);
        try (ShortLock _ = shard.lock.hold()) {
            int before = waiting;
            long bytes = 0;
            for (int head = takePassed(); head != Blocks.NONE; head = takePassed()) {
                bytes += freeList(head);
            }
            pause = waiting < before ? 1 : Math.min(pause * 2, LONGEST_PAUSE);
            untilPoll = pause;
            return bytes;
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

    /// Polls all fences; those that have passed are released and become [Fences#PASSED].
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

    /// Releases a fence, or leaves that to a thread that waits for it.
    private void release(Fences fences, long passed) {
        for (int i = 0; i < waits.size(); i++) {
            if (waits.get(i).takeOver(passed)) {
                return;
            }
        }
        fences.release(passed);
    }

    /// Begins to wait for all recorded fences. The caller holds the driver lock only.
    Wait beginWait() {
        long[] asked = new long[0];
        for (int i = 0; i < recordedCount; i++) {
            asked = with(asked, fence[i]);
            for (long other : otherFences[i]) {
                asked = with(asked, other);
            }
        }
        waits.ensureCapacity(waits.size() + 1);
        Wait wait = new Wait(asked);
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

    /// Ends a wait, whether its fences have passed or not. The caller holds the driver lock only.
    void endWait(Wait wait, Fences fences) {
        waits.remove(wait);
        for (int i = 0; i < wait.fences.length; i++) {
            if (wait.mine[i]) {
                release(fences, wait.fences[i]);
            }
        }
    }

    /// Removes a list whose fences have all passed; returns its first block, or [Blocks#NONE] if no list has passed.
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
