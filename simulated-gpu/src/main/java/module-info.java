/// A CUDA driver in plain Java, for machines without a GPU and for tests: it models the memory, streams and
/// errors of the real driver, runs on virtual time, and reports misuse that hardware would hide.
@org.jspecify.annotations.NullMarked
module io.cistern.simulated {
    requires static org.jspecify;
    requires transitive io.cistern.cuda;

    exports io.cistern.simulated;

    uses io.cistern.simulated.SimulatedKernels;

    provides io.cistern.cuda.CudaDriverProvider with
            io.cistern.simulated.SimulatedDriverProvider;
}
