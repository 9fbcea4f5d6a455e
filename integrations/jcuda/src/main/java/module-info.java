/// Converts memory, streams, events, contexts and handles to and from JCuda's ([io.cistern.jcuda]).
@org.jspecify.annotations.NullMarked
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"}) // JCuda has no module descriptor
module io.cistern.jcuda {
    requires static transitive io.cistern.handles; // for handles of JCublas, like the next one
    requires static transitive jcublas;
    requires static org.jspecify;
    requires io.cistern.hazards;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive jcuda;

    exports io.cistern.jcuda;
}
