/// Makes Cistern the allocator of PyTorch: contains the functions that `libcistern_torch.so` calls in the JVM
/// that it starts. It exports nothing; programs use the Python package `cistern_torch`.
@org.jspecify.annotations.NullMarked
module io.cistern.torch {
    requires static org.jspecify;
    requires io.cistern.api;
    requires io.cistern.observability;
}
