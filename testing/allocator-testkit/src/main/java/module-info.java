/// Contains the tests that every allocator must pass ([io.cistern.testkit]), for this project
/// and for third parties.
///
/// The module is open, because JUnit finds and calls test methods by reflection.
@org.jspecify.annotations.NullMarked
open module io.cistern.testkit {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.cuda;
    requires transitive io.cistern.simulated;
    requires transitive org.junit.jupiter.api;
    requires transitive org.junit.jupiter.params;
    requires io.cistern.hazards;
    requires org.assertj.core;

    exports io.cistern.testkit;

    uses io.cistern.spi.AllocatorProvider;
    uses io.cistern.spi.catalog.CatalogProvider;
    uses io.cistern.spi.SegmentSourceProvider;
}
