package io.cistern.cli;

import io.cistern.simulated.SimulatedGpu;
import io.cistern.suites.ScopedPools;

/// Scopes and swaps over real memory, on the simulated GPU: this module has all allocators on its class path.
final class ScopedPoolsTests extends ScopedPools {
    ScopedPoolsTests() {
        super(SimulatedGpu.builder().build());
    }
}
