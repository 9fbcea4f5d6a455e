/// All that a program needs, under one name: the API, buffers, the allocators and their loader, the drivers. It
/// has no classes of its own.
///
/// ![The modules and their dependencies](doc-files/modules.svg)
@org.jspecify.annotations.NullMarked
module io.cistern {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive io.cistern.pressure;
    requires transitive io.cistern.adaptors;
    requires transitive io.cistern.hazards;
    requires transitive io.cistern.async;
    requires transitive io.cistern.caching;
    requires transitive io.cistern.loader;
    requires transitive io.cistern.nccl;
    requires transitive io.cistern.simulated;
}
