/// Provides device memory, pools and allocators by injection: [io.cistern.guice.CisternModule].
@org.jspecify.annotations.NullMarked
// Guice and its dependencies name their modules only in manifests, or not at all.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.guice {
    requires static org.jspecify;
    requires aopalliance;
    requires io.cistern.adaptors;
    requires transitive jakarta.inject;
    requires transitive com.google.guice;
    requires transitive io.cistern.api;

    exports io.cistern.guice;
}
