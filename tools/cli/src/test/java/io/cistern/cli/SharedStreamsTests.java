package io.cistern.cli;

import io.cistern.suites.SharedStreams;
import org.junit.jupiter.api.extension.ExtendWith;

/// Threads that share streams on the simulated GPU, which also reports misuse in stream order.
@ExtendWith(OnTheSimulatedGpu.class)
class SharedStreamsTests extends SharedStreams {}
