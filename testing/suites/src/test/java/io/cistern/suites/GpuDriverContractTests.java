package io.cistern.suites;

import org.junit.jupiter.api.Tag;

@Tag("gpu")
class GpuDriverContractTests extends ChosenDriverContract {}
