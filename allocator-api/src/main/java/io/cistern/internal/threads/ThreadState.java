package io.cistern.internal.threads;

import java.lang.ref.WeakReference;
import org.jspecify.annotations.Nullable;

/// State that one platform thread owns, or some virtual threads share. A [ThreadTable] finds it.
public abstract class ThreadState extends BiasedLock {
    /// The owner's id, which is never given to another thread, with the table's group. 0 if threads share the
    /// state.
    long key;

    /// Shows when the owner has ended, without keeping it reachable.
    private volatile @Nullable WeakReference<Thread> owner;

    /// @param owned whether one thread owns it
    protected ThreadState(boolean owned) {
        super(owned);
    }

    final void own(Thread thread, long ofIt) {
        owner = new WeakReference<>(thread);
        key = ofIt;
    }

    /// Returns whether the owner has ended. A thread that sees the end of another one sees all writes of that
    /// thread.
    final boolean isOrphan() {
        WeakReference<Thread> reference = owner;
        if (reference == null) {
            return false;
        }
        Thread thread = reference.get();
        return thread == null || !thread.isAlive();
    }

    public final boolean isShared() {
        return owner == null;
    }

    /// Returns true if the owner is the calling thread, which waits, or has ended.
    @Override
    protected final boolean isOwnerElsewhere() {
        WeakReference<Thread> reference = owner;
        return reference != null && (reference.refersTo(Thread.currentThread()) || isOrphan());
    }
}
