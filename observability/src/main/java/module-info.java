/// Shows the past and present of device memory: by a history of events and by snapshots
/// ([io.cistern.observability]), as events of Java Flight Recorder ([io.cistern.observability.jfr]),
/// through a JMX bean ([io.cistern.observability.jmx]), and as ranges in NVIDIA's profilers
/// ([io.cistern.observability.nvtx]).
///
/// @provides io.cistern.ModuleSupport.Observer
@org.jspecify.annotations.NullMarked
@SuppressWarnings("requires-automatic") // the pickle library's module is named after its JAR
module io.cistern.observability {
    requires static org.jspecify;
    requires static pickle; // for snapshots that PyTorch's tools open
    requires com.fasterxml.jackson.core;
    requires java.sql; // the pickle library needs it, but does not declare it
    requires jdk.jfr;
    requires transitive io.cistern.api;
    requires transitive java.management;

    exports io.cistern.observability;
    exports io.cistern.observability.jfr;
    exports io.cistern.observability.jmx;
    exports io.cistern.observability.nvtx;

    opens io.cistern.observability.jfr to
            jdk.jfr; // creates the settings of events

    provides io.cistern.ModuleSupport.Observer with
            io.cistern.observability.setting.Observers.History,
            io.cistern.observability.setting.Observers.Snapshots,
            io.cistern.observability.setting.Observers.Flight,
            io.cistern.observability.setting.Observers.Beans,
            io.cistern.observability.setting.Observers.Nvtx;
}
