package io.cistern.caching.internal.order;

import java.util.concurrent.atomic.AtomicLong;

/// A coarse clock of one device's cache, which advances by one at each miss and each fence. Frees are stamped
/// with it: a fence recorded after the clock left time `t` covers all frees stamped `t` or less, and of two
/// idle pages the one with the lower stamp has been idle for longer.
public final class MissClock {
    private final AtomicLong now = new AtomicLong();

    public long now() {
        return now.get();
    }

    /// Advances the clock.
    ///
    /// @return the time that ended
    public long advance() {
        return now.getAndIncrement();
    }
}
