package io.cistern.caching.internal.base;

/// Checks one condition of a `checkInvariants()` method.
public final class Invariant {
    private Invariant() {}

    /// Throws an `IllegalStateException` if the condition does not hold.
    public static void check(boolean holds, String what, long where) {
        if (!holds) {
            throw new IllegalStateException("does not hold: " + what + " (0x" + Long.toHexString(where) + ")");
        }
    }
}
