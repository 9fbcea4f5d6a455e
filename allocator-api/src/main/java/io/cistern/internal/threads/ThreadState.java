package io.cistern.internal.threads;

import java.lang.ref.WeakReference;
import org.jspecify.annotations.Nullable;

/// What one platform thread has to itself, or some virtual threads share; found by a [ThreadTable].
public abstract class ThreadState extends BiasedLock {
    /// Of the owner: its id, which is never given to another thread, and the table's group. 0 where threads share.
    long key;

    /// Tells when the owner has ended, without keeping it.
    private volatile @Nullable WeakReference<Thread> owner;

    /// @param owned whether one thread has it to itself
    protected ThreadState(boolean owned) {
        super(owned);
    }

    final void own(Thread thread, long ofIt) {
        owner = new WeakReference<>(thread);
        key = ofIt;
    }

    /// Whether the owner has ended. Seeing the end of a thread orders all that it wrote before what the observer does
    /// next.
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

    /// The owner is not inside when it waits itself, nor when it has ended.
    @Override
    protected final boolean isOwnerElsewhere() {
        WeakReference<Thread> reference = owner;
        return reference != null && (reference.refersTo(Thread.currentThread()) || isOrphan());
    }
}
