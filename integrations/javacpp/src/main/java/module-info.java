/// Memory, streams and library handles for programs that call CUDA through JavaCPP's presets
/// ([io.cistern.javacpp]).
@org.jspecify.annotations.NullMarked
module io.cistern.javacpp {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires transitive io.cistern.handles;
    requires transitive org.bytedeco.cuda;
    requires transitive org.bytedeco.javacpp;

    exports io.cistern.javacpp;
}
