/// Tests that every allocator and every driver must pass ([io.cistern.testkit], [io.cistern.testkit.driver]), and
/// those of buffers ([io.cistern.testkit.buffers]), for the project itself and for third parties, with a main class
/// that runs them on a GPU without a build tool.
///
/// Open, since JUnit finds and calls test methods by reflection.
@org.jspecify.annotations.NullMarked
open module io.cistern.testkit {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive io.cistern.cuda;
    requires transitive io.cistern.simulated;
    requires transitive org.junit.jupiter.api;
    requires transitive org.junit.jupiter.params;
    requires io.cistern.jvm;
    requires org.assertj.core;
    requires org.junit.jupiter.engine;
    requires org.junit.platform.launcher;

    exports io.cistern.testkit;
    exports io.cistern.testkit.buffers;
    exports io.cistern.testkit.driver;

    uses io.cistern.cuda.CudaDriverProvider;
    uses io.cistern.spi.AllocatorProvider;
    uses io.cistern.spi.catalog.CatalogProvider;
    uses io.cistern.spi.SegmentSourceProvider;
    uses io.cistern.testkit.GpuSuites;
}
