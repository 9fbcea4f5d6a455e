/// Device memory as objects: buffers, arenas, pinned host memory, copies and kernels ([io.cistern.buffers]).
@org.jspecify.annotations.NullMarked
module io.cistern.buffers {
    requires static org.jspecify;
    requires transitive io.cistern.api;

    exports io.cistern.buffers;
}
