package io.cistern.handles;

import org.jspecify.annotations.Nullable;

/// Holds the handles that no thread has, in a stack linked through the handles, so that it needs no Java heap.
/// Invariant: each was idle at least as long as the handles above it.
///
/// **Threads.** Guarded by the lock of its [DeviceHandles].
///
/// @param <H> the handle
final class IdleHandles<H> {
    private @Nullable PooledHandle<H> top;
    private int count;

    void push(PooledHandle<H> handle) {
        handle.idleSince = System.nanoTime();
        handle.below = top;
        top = handle;
        count++;
    }

    @Nullable
    PooledHandle<H> pop() {
        PooledHandle<H> last = top;
        if (last != null) {
            top = last.below;
            last.below = null;
            count--;
        }
        return last;
    }

    /// Removes and returns a handle that has been idle for some time.
    ///
    /// @return null if there is none
    @Nullable
    PooledHandle<H> takeOld(long nanos) {
        long now = System.nanoTime();
        PooledHandle<H> above = null;
        PooledHandle<H> each = top;
        while (each != null && now - each.idleSince < nanos) {
            above = each;
            each = each.below;
        }
        if (each == null) {
            return null;
        }
        if (above == null) {
            return pop();
        }
        above.below = each.below;
        each.below = null;
        count--;
        return each;
    }

    int count() {
        return count;
    }
}
