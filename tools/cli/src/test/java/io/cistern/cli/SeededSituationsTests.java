package io.cistern.cli;

import io.cistern.suites.SeededSituations;
import org.junit.jupiter.api.extension.ExtendWith;

/// The situations on the simulated GPU, which also reports misuse in stream order.
@ExtendWith(OnTheSimulatedGpu.class)
class SeededSituationsTests extends SeededSituations {}
