package io.cistern.internal.routing;

import java.util.concurrent.atomic.AtomicLong;

/// The most bytes requested since a reset, as far as threads' counters have told.
///
/// Whoever lowers a ceiling tells the bound that it kept until then. What was said to one that a reset has
/// replaced since is heard by nobody.
final class PeakSince {
    private final AtomicLong bytes = new AtomicLong();

    void note(long requestedBytes) {
        long known = bytes.get();
        while (requestedBytes > known && !bytes.compareAndSet(known, requestedBytes)) {
            known = bytes.get(); // which has grown
        }
    }

    long bytes() {
        return bytes.get();
    }
}
