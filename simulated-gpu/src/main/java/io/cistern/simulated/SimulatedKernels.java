package io.cistern.simulated;

/// Registers Java kernels with every simulated GPU of the process when it is built; found by
/// [java.util.ServiceLoader]. A program that loads PTX can then run unchanged without a GPU.
public interface SimulatedKernels {
    /// Registers the kernels.
    ///
    /// @param kernels the kernels of a machine that is being built
    void register(Kernels kernels);
}
