package io.cistern.caching;

/// The check behind each `checkInvariants()`.
final class Invariant {
    private Invariant() {}

    static void check(boolean holds, String what, long where) {
        if (!holds) {
            throw new IllegalStateException("does not hold: " + what + " (0x" + Long.toHexString(where) + ")");
        }
    }
}
