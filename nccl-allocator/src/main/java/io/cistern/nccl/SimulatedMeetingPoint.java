package io.cistern.nccl;

import java.util.Arrays;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Lets the ranks of one unique id wait for each other. Guarded by its own monitor.
final class SimulatedMeetingPoint {
    private static final int ABSENT = -1;

    private int[] devices = {};
    private int arrived;
    private @Nullable SimulatedClique clique;

    /// Waits until all ranks have arrived.
    ///
    /// @return the devices, by rank
    synchronized int[] meet(int rankCount, int firstRank, int... here) {
        if (devices.length == 0) {
            devices = new int[rankCount];
            Arrays.fill(devices, ABSENT);
        }
        for (int i = 0; i < here.length; i++) {
            if (rankCount != devices.length || devices[firstRank + i] != ABSENT) {
                throw SimulatedNccl.refused(
                        "ncclCommInitRank",
                        NcclResult.INVALID_USAGE,
                        "rankCount=" + rankCount + ", rank=" + (firstRank + i),
                        "another rank expects " + devices.length + " ranks, or has the same number");
            }
            devices[firstRank + i] = here[i];
            arrived++;
        }
        notifyAll();
        awaitAll();
        return devices.clone();
    }

    private void awaitAll() {
        boolean interrupted = false;
        while (arrived < devices.length) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    synchronized SimulatedClique clique(Supplier<SimulatedClique> making) {
        SimulatedClique made = clique != null ? clique : making.get();
        clique = made;
        return made;
    }
}
