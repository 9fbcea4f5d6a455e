/// A CUDA driver in plain Java, for machines without a GPU and for tests: memory, streams and errors as the real
/// driver has them, on virtual time, with reports of misuse that hardware would hide.
@org.jspecify.annotations.NullMarked
module io.cistern.simulated {
    requires static org.jspecify;
    requires transitive io.cistern.cuda;

    exports io.cistern.simulated;

    uses io.cistern.simulated.SimulatedKernels;

    provides io.cistern.cuda.CudaDriverProvider with
            io.cistern.simulated.SimulatedDriverProvider;
}
