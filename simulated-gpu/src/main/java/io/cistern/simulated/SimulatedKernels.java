package io.cistern.simulated;

/// Kernels in Java that every simulated GPU of the process has from its start, found by [java.util.ServiceLoader]:
/// so a program that loads PTX runs where there is no GPU as well, without knowing of it.
public interface SimulatedKernels {
    /// Adds them.
    ///
    /// @param kernels of a machine that is being built
    void register(Kernels kernels);
}
