/// Carries scopes wherever Micrometer's context propagation carries values: in Reactor, and in libraries that
/// capture a context snapshot.
///
/// @provides io.micrometer.context.ThreadLocalAccessor
@org.jspecify.annotations.NullMarked
// The library names its module only in its manifest.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.context {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive context.propagation;

    exports io.cistern.context;

    provides io.micrometer.context.ThreadLocalAccessor with
            io.cistern.context.ScopeAccessor;
}
