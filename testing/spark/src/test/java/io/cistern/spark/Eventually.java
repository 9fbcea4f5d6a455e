package io.cistern.spark;

import java.time.Duration;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// Waits for what other threads and processes do, within a bound.
final class Eventually {
    private static final Duration LONGEST = Duration.ofMinutes(2);
    private static final long PAUSE_MILLIS = 50;

    private Eventually() {}

    static boolean holds(BooleanSupplier condition) {
        return present(() -> condition.getAsBoolean() ? Optional.of(true) : Optional.empty());
    }

    static <T> T present(Supplier<Optional<T>> look) {
        long begun = System.nanoTime();
        while (System.nanoTime() - begun < LONGEST.toNanos()) {
            Optional<T> found = look.get();
            if (found.isPresent()) {
                return found.get();
            }
            pause();
        }
        throw new AssertionError("nothing within " + LONGEST);
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
