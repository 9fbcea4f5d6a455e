package io.cistern.simulated;

import io.cistern.cuda.LinearMemory.AddressRange;
import java.util.List;

/// A kernel of the simulated GPU: what a launch does to memory, written in Java.
///
/// All methods are called under the machine's lock by whichever thread moves the clock: they must be quick, must
/// not call the driver and must not block.
@FunctionalInterface
public interface SimulatedKernel {
    /// Does the kernel's work; called once, at the virtual time at which the kernel ends.
    ///
    /// @param launch arguments and memory
    void run(KernelLaunch launch);

    /// Whether the kernel, once begun, still has to go on: asked again and again until it says no.
    ///
    /// @param launch arguments and memory
    default boolean spins(KernelLaunch launch) {
        return false;
    }

    /// How long the kernel runs, in virtual nanoseconds, from its begin or from the moment it stops spinning.
    ///
    /// @param launch arguments; its memory must not be touched
    default long durationNanos(KernelLaunch launch) {
        return 2_000;
    }

    /// The memory that the kernel will use, for the reports of misuse.
    ///
    /// @param launch arguments; its memory must not be touched
    default List<AddressRange> uses(KernelLaunch launch) {
        return List.of();
    }
}
