package io.cistern.simulated;

/// Registers Java kernels with every simulated GPU of the process when it is built; found by
/// [java.util.ServiceLoader]. So a program that loads PTX also runs without a GPU, and need not know it.
public interface SimulatedKernels {
    /// Registers the kernels.
    ///
    /// @param kernels the kernels of a machine that is being built
    void register(Kernels kernels);
}
