package io.cistern.nccl;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// One rank of a [SimulatedClique], and its registrations. Guarded by the clique, as are its counts.
final class SimulatedRank {
    private final SimulatedClique clique;
    private final int rank;
    private final Map<Long, Long> registered = new ConcurrentHashMap<>();

    /// The number of collectives that it has called.
    long collectives;

    SimulatedRank(SimulatedClique clique, int rank) {
        this.clique = clique;
        this.rank = rank;
    }

    SimulatedClique clique() {
        return clique;
    }

    int rank() {
        return rank;
    }

    long registered(long number, long address) {
        registered.put(number, address);
        return number;
    }

    void deregister(String call, long number) {
        if (registered.remove(number) == null) {
            throw SimulatedNccl.refused(call, NcclResult.INVALID_ARGUMENT, "handle=" + number, "no such registration");
        }
    }
}
