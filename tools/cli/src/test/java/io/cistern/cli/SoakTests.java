package io.cistern.cli;

import io.cistern.suites.Soak;
import org.junit.jupiter.api.extension.ExtendWith;

/// A short soak on the simulated GPU, which also reports misuse in stream order.
@ExtendWith(OnTheSimulatedGpu.class)
class SoakTests extends Soak {}
