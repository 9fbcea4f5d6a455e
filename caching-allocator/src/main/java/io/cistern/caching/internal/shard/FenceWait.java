package io.cistern.caching.internal.shard;

import io.cistern.caching.internal.order.Fences;

/// The fences that one thread waits for on the host while it holds no lock. Meanwhile others may find that they have
/// passed; then the thread releases them when its wait has ended.
///
/// Guarded by the driver lock of the shard.
final class FenceWait {
    private final long[] fences;
    private final boolean[] mine;

    /// @param fences not [Fences#PASSED]
    FenceWait(long[] fences) {
        this.fences = fences;
        this.mine = new boolean[fences.length];
    }

    /// Waits for all of them; not for those that can't be waited for while streams are captured. With no lock.
    void await(Fences all) {
        for (long fence : fences) {
            all.await(fence);
        }
    }

    /// Takes a fence over that nobody else needs any more.
    ///
    /// @return false if it is none of these
    boolean takeOver(long fence) {
        for (int i = 0; i < fences.length; i++) {
            if (fences[i] == fence) {
                mine[i] = true;
                return true;
            }
        }
        return false;
    }

    int size() {
        return fences.length;
    }

    long fence(int i) {
        return fences[i];
    }

    /// Whether this has to release a fence.
    boolean isMine(int i) {
        return mine[i];
    }
}
