package io.cistern.testkit;

/// Where random tests start: always the same number, so that a build is repeatable, or the one in [#PROPERTY].
public final class Seed {
    /// A system property: the number that random tests start from.
    public static final String PROPERTY = "cistern.testkit.seed";

    private Seed() {}

    /// Returns the number to start from.
    public static long current() {
        return Long.getLong(PROPERTY, 20_260_101L);
    }

    /// Returns a text for a failure: the seed, and how to repeat it.
    public static String describe(long seed) {
        return "seed " + seed + " (repeat with -D" + PROPERTY + "=" + seed + ")";
    }
}
