package io.cistern.testkit;

import org.junit.jupiter.api.Tag;

@Tag("gpu")
class GpuConformanceTests extends CatalogConformance {}
