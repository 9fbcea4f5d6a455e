package io.cistern.caching.internal.base;

/// The check behind each `checkInvariants()`.
public final class Invariant {
    private Invariant() {}

    public static void check(boolean holds, String what, long where) {
        if (!holds) {
            throw new IllegalStateException("does not hold: " + what + " (0x" + Long.toHexString(where) + ")");
        }
    }
}
