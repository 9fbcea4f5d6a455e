package io.cistern.internal.routing;

import java.util.concurrent.atomic.AtomicLong;

/// The most bytes requested since a reset, as far as lanes have told.
///
/// A lane tells, when it changes the meter, the bound that it kept since its change before. That bound belongs to
/// the reset that was the last at the beginning of its time; told to an older one than the last it is heard by
/// nobody.
final class PeakSince {
    private final AtomicLong bytes = new AtomicLong();

    void note(long requestedBytes) {
        if (requestedBytes > bytes.get()) {
            bytes.accumulateAndGet(requestedBytes, Math::max);
        }
    }

    long bytes() {
        return bytes.get();
    }
}
