package org.example.idle;

import io.cistern.Allocators;

/// Allocates once and ends.
public final class FirstAllocation {
    private FirstAllocation() {}

    public static void main(String[] arguments) {
        if (Allocators.allocate(1 << 20, 0, 0) == 0) {
            throw new AssertionError();
        }
    }
}
