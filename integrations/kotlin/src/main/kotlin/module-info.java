/// Carries scopes with Kotlin's coroutines from thread to thread.
///
/// `io.cistern.kotlin.DeviceMemoryScope` is an element of a coroutine's context. It is created from an
/// allocator, from a pool, or from the calling thread's scopes. `allocator.scoped { … }` and
/// `pool.scoped { … }` call code in it. Their documentation is in the sources.
module io.cistern.kotlin {
    requires transitive io.cistern.api;
    requires transitive kotlin.stdlib;
    requires transitive kotlinx.coroutines.core;

    exports io.cistern.kotlin;
}
