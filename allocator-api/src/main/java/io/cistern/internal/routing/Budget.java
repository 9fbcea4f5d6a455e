package io.cistern.internal.routing;

import java.util.concurrent.atomic.AtomicLong;

/// A limit on one device's requested bytes, over all allocators: never exceeded, and nothing that fits is refused.
public final class Budget {
    private final long limitBytes;
    private final AtomicLong used = new AtomicLong();

    /// Sets a limit in bytes.
    public Budget(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// Takes bytes before an allocation.
    ///
    /// @return false if they would exceed the limit; nothing is taken then
    boolean tryTake(long byteSize) {
        long now;
        do {
            now = used.get();
            if (byteSize > limitBytes - now) {
                return false;
            }
        } while (!used.compareAndSet(now, now + byteSize));
        return true;
    }

    /// Gives bytes back after a free, or after an allocation that failed.
    void giveBack(long byteSize) {
        used.addAndGet(-byteSize);
    }

    /// The limit and how much of it is in use, for messages.
    @Override
    public String toString() {
        return "limit of " + limitBytes + " bytes, " + used.get() + " of them in use";
    }
}
