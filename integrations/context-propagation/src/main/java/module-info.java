/// Carries scopes wherever Micrometer's context propagation carries anything: Reactor, and the libraries that capture
/// a context snapshot.
///
/// @provides io.micrometer.context.ThreadLocalAccessor
@org.jspecify.annotations.NullMarked
// The library names its module in its manifest alone.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.context {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive context.propagation;

    exports io.cistern.context;

    provides io.micrometer.context.ThreadLocalAccessor with
            io.cistern.context.ScopeAccessor;
}
