/// Memory, streams, events and contexts to and from JCuda ([io.cistern.jcuda]).
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // JCuda has no module descriptor
module io.cistern.jcuda {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive jcuda;

    exports io.cistern.jcuda;
}
