package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.order.Fences;

/// The fences for which one thread waits on the host while it holds no lock. If other threads find meanwhile
/// that fences have passed, the waiting thread releases these after its wait.
///
/// Guarded by the driver lock of the shard.
final class FenceWait {
    final long[] fences;
    /// Which of them this wait has to release.
    final boolean[] mine;

    /// @param fences fences other than [Fences#PASSED]
    FenceWait(long[] fences) {
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
