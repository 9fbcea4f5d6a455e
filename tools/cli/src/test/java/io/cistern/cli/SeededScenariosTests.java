package io.cistern.cli;

import io.cistern.suites.SeededScenarios;
import org.junit.jupiter.api.extension.ExtendWith;

/// The scenarios on the simulated GPU, which also reports misuse in stream order.
@ExtendWith(OnTheSimulatedGpu.class)
class SeededScenariosTests extends SeededScenarios {}
