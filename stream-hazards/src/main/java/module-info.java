/// Finds uses of memory without the necessary stream order: [io.cistern.hazards.StreamHazards].
///
/// @provides io.cistern.ModuleSupport.Observer
@org.jspecify.annotations.NullMarked
module io.cistern.hazards {
    requires static org.jspecify;
    requires jdk.jfr;
    requires transitive io.cistern.api;

    exports io.cistern.hazards;

    opens io.cistern.hazards to
            jdk.jfr; // creates the settings of events

    provides io.cistern.ModuleSupport.Observer with
            io.cistern.hazards.HazardObserver;
}
