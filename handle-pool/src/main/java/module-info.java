/// Handles of libraries such as cuBLAS and cuDNN: one for each thread and device, with its stream set
/// ([io.cistern.handles]).
@org.jspecify.annotations.NullMarked
module io.cistern.handles {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires jdk.jfr;

    exports io.cistern.handles;
}
