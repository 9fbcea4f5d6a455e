/// Everything that a program needs, by one name: the API, buffers, the allocators and what finds them, the drivers.
/// It has no classes of its own.
///
/// ![The modules and what each reads](doc-files/modules.svg)
@org.jspecify.annotations.NullMarked
module io.cistern {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive io.cistern.pressure;
    requires transitive io.cistern.adaptors;
    requires transitive io.cistern.async;
    requires transitive io.cistern.caching;
    requires transitive io.cistern.loader;
    requires transitive io.cistern.nccl;
    requires transitive io.cistern.simulated;
}
