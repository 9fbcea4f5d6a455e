package io.cistern.internal.routing;

import java.util.concurrent.atomic.AtomicLong;

/// The limit on one device's requested bytes, over all allocators. Without a limit it counts nothing.
public final class Budget {
    private static final long UNLIMITED = Long.MAX_VALUE;

    private final long limitBytes;
    private final AtomicLong used = new AtomicLong();

    private Budget(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// No limit.
    public static Budget unlimited() {
        return new Budget(UNLIMITED);
    }

    /// A limit in bytes.
    public static Budget of(long limitBytes) {
        return new Budget(limitBytes);
    }

    boolean isLimited() {
        return limitBytes != UNLIMITED;
    }

    /// The limit, for messages.
    long limitBytes() {
        return limitBytes;
    }

    /// Bytes in use under the limit, for messages.
    long usedBytes() {
        return used.get();
    }

    boolean tryTake(long byteSize) {
        if (!isLimited()) {
            return true;
        }
        long now;
        do {
            now = used.get();
            if (byteSize > limitBytes - now) {
                return false;
            }
        } while (!used.compareAndSet(now, now + byteSize));
        return true;
    }

    void giveBack(long byteSize) {
        if (isLimited()) {
            used.addAndGet(-byteSize);
        }
    }
}
