/// Handles of libraries such as cuBLAS and cuDNN: one for the calling thread and a device, with its stream set
/// ([io.cistern.handles]); matrix products with cuBLAS ([io.cistern.handles.cublas]); cuDNN's handles
/// ([io.cistern.handles.cudnn]).
@org.jspecify.annotations.NullMarked
module io.cistern.handles {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires transitive io.cistern.buffers;
    requires jdk.jfr;

    exports io.cistern.handles;
    exports io.cistern.handles.cublas;
    exports io.cistern.handles.cudnn;
}
