package io.cistern.cli;

import io.cistern.suites.ChosenScopedPools;
import org.junit.jupiter.api.Tag;

/// Scopes and swaps over real memory, on a GPU.
@Tag("gpu")
final class GpuScopesTests extends ChosenScopedPools {}
