package io.cistern.testkit;

/// Where random tests start: always the same number, so that a build is repeatable, or the one in [#PROPERTY].
final class Seed {
    static final String PROPERTY = "cistern.testkit.seed";

    private Seed() {}

    static long current() {
        return Long.getLong(PROPERTY, 20_260_101L);
    }

    static String describe(long seed) {
        return "seed " + seed + " (repeat with -D" + PROPERTY + "=" + seed + ")";
    }
}
