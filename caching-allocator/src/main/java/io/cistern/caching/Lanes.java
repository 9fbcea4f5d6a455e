package io.cistern.caching;

import io.cistern.cuda.process.ProcessFence;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.stream.Stream;

/// The lanes of one device: one for each platform thread that uses it, and a few that virtual threads share.
///
/// When a thread ends, its lane waits, with its blocks, for the next new thread, or for somebody who
/// empties it; so there are never more lanes than threads were alive at once.
///
/// **Emptying.** 1. All lanes that hold something are claimed. 2. One [ProcessFence]. 3. Each is left by
/// its owner, and its blocks are taken out. 4. The claims end. 5. The blocks go back to their shards.
/// Owners never wait for it.
///
/// **Threads.** Any. Those who empty lanes take turns; no lock of a shard is taken meanwhile.
final class Lanes {
    private static final int SHARED_LANES =
            Integer.highestOneBit(4 * Runtime.getRuntime().availableProcessors());

    private final int device;
    private final long largestKept;
    private final DeviceCounters counters;

    private final ReentrantLock emptying = new ReentrantLock();
    /// Made when the first virtual thread comes.
    private volatile Lane[] shared = {};
    private volatile Lane[] owned = {};

    /// Makes those of a device.
    ///
    /// @param largestKept larger blocks always go to their shard
    Lanes(int device, long largestKept, DeviceCounters counters) {
        this.device = device;
        this.largestKept = largestKept;
        this.counters = counters;
    }

    synchronized Lane adoptOrMake(Thread thread) {
        for (Lane lane : owned) {
            if (lane.isOrphan()) {
                lane.takeOver(thread);
                return lane;
            }
        }
        Lane lane = new Lane(device, true, largestKept, counters);
        lane.takeOver(thread);
        Lane[] more = Arrays.copyOf(owned, owned.length + 1);
        more[owned.length] = lane;
        owned = more;
        return lane;
    }

    /// A lane for the calling virtual thread, entered; the caller leaves it.
    Lane enterShared() {
        Lane[] all = shared.length > 0 ? shared : makeShared();
        int at = (int) Thread.currentThread().threadId();
        while (true) { // who is inside leaves soon, whatever happens
            Lane lane = all[at++ & (SHARED_LANES - 1)];
            if (lane.enterShared()) {
                return lane;
            }
            Thread.onSpinWait();
        }
    }

    private synchronized Lane[] makeShared() {
        if (shared.length == 0) {
            Lane[] made = new Lane[SHARED_LANES];
            Arrays.setAll(made, _ -> new Lane(device, false, largestKept, counters));
            shared = made;
        }
        return shared;
    }

    /// Bytes of a shard's blocks in lanes and its depot; a guess while others change it, exact at rest.
    long bytesOf(StreamShard shard) {
        long bytes = shard.depot.bytes();
        for (Lane lane : owned) {
            bytes += lane.bytesOf(shard);
        }
        for (Lane lane : shared) {
            bytes += lane.bytesOf(shard);
        }
        return bytes;
    }

    /// The size of the largest block in a lane, or 0; a guess while others change it, exact at rest.
    long largestBytes() {
        return Stream.concat(Arrays.stream(owned), Arrays.stream(shared))
                .mapToLong(Lane::largestBytes)
                .max()
                .orElse(0);
    }

    /// Corrects what shards counted for what lanes hold and hand out: a guess while others use them, exact at
    /// rest.
    void addTo(ShardTotals small, ShardTotals large) {
        for (Lane lane : owned) {
            lane.addTo(small, large);
        }
        for (Lane lane : shared) {
            lane.addTo(small, large);
        }
    }

    /// Makes the present values of all lanes their peaks.
    void resetPeaks() {
        claimed(Lane::resetPeaks);
    }

    /// Takes a shard's blocks out of all lanes and its depot.
    ///
    /// @param evicted gets them, also those taken out before a failure
    void evict(StreamShard shard, AddressBatch evicted) {
        claimed(lane -> lane.evict(shard, evicted));
        shard.depot.empty(evicted);
    }

    /// Takes the blocks of a closed stream's shards out of all lanes and their depots, for good.
    void end(List<StreamShard> shards, AddressBatch evicted) {
        claimed(lane -> {
            for (StreamShard shard : shards) {
                lane.end(shard, evicted);
            }
        });
        for (StreamShard shard : shards) {
            shard.depot.empty(evicted);
        }
    }

    /// Checks the invariants of every lane.
    ///
    /// @throws IllegalStateException if one does not hold
    void checkInvariants() {
        claimed(Lane::checkInvariants);
    }

    private void claimed(Consumer<Lane> action) {
        emptying.lock();
        try {
            claimAll(owned, action);
            applyAll(shared, action);
        } finally {
            emptying.unlock();
        }
    }

    private static void claimAll(Lane[] all, Consumer<Lane> action) {
        try {
            for (Lane lane : all) {
                lane.claim();
            }
            if (all.length > 0 && ProcessFence.isSupported()) {
                ProcessFence.everywhere();
            }
            applyAll(all, action);
        } finally {
            for (Lane lane : all) { // after a failure, those that it did not come to
                lane.abandonClaim();
            }
        }
    }

    private static void applyAll(Lane[] lanes, Consumer<Lane> action) {
        for (Lane lane : lanes) {
            lane.awaitClaim();
            try {
                action.accept(lane);
            } finally {
                lane.unclaim();
            }
        }
    }
}
