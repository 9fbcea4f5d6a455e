/// What happened to device memory, and what it looks like now: the history of events, and snapshots for people and
/// tools.
@org.jspecify.annotations.NullMarked
@SuppressWarnings("requires-automatic") // the pickle library has no module name but that of its JAR
module io.cistern.observability {
    requires static org.jspecify;
    requires static pickle; // for snapshots that PyTorch's tools open
    requires com.fasterxml.jackson.core;
    requires transitive io.cistern.api;

    exports io.cistern.observability;
}
