/// Handles of libraries such as cuBLAS and cuDNN: one for the calling thread and a device, with its stream set
/// ([io.cistern.handles]).
@org.jspecify.annotations.NullMarked
module io.cistern.handles {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires jdk.jfr;

    exports io.cistern.handles;
}
