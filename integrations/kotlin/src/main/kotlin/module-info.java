/// Scopes that Kotlin's coroutines take with them from thread to thread.
///
/// `io.cistern.kotlin.DeviceMemoryScope` is an element of a coroutine's context, made from an allocator, a pool
/// or the scopes that the calling thread is in. `allocator.scoped { … }` and `pool.scoped { … }` call code in
/// it. The sources describe them.
module io.cistern.kotlin {
    requires transitive io.cistern.api;
    requires transitive kotlin.stdlib;
    requires transitive kotlinx.coroutines.core;

    exports io.cistern.kotlin;
}
