package io.cistern.testkit;

/// Chooses the seed of random tests: always the same number, so that a build is repeatable, or
/// the one in [#PROPERTY].
public final class Seed {
    /// The system property that sets the seed.
    public static final String PROPERTY = "cistern.testkit.seed";

    private Seed() {}

    /// Returns the seed to start from.
    public static long current() {
        return Long.getLong(PROPERTY, 20_260_101L);
    }

    /// Returns a text for a failure: the seed, and how to repeat the run.
    public static String describe(long seed) {
        return "seed " + seed + " (repeat with -D" + PROPERTY + "=" + seed + ")";
    }
}
