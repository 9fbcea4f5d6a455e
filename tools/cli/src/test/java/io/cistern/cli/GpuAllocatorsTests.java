package io.cistern.cli;

import io.cistern.suites.CatalogConformance;
import org.junit.jupiter.api.Tag;

/// Every allocator that the program brings, on a GPU: this module has them all on its class path.
@Tag("gpu")
final class GpuAllocatorsTests extends CatalogConformance {}
