package io.cistern.simulated;

import io.cistern.cuda.LinearMemory.AddressRange;
import java.util.List;

/// A kernel of the simulated GPU: the effect of a launch on memory, written in Java.
///
/// All methods are called under the machine's lock, on the thread that moves the clock. They must be quick,
/// must not call the driver and must not block.
@FunctionalInterface
public interface SimulatedKernel {
    /// Does the kernel's work. Called once, at the virtual time at which the kernel ends.
    ///
    /// @param launch arguments and memory
    void run(KernelLaunch launch);

    /// Returns whether a kernel that has begun must keep spinning. Called repeatedly until it returns false.
    ///
    /// @param launch arguments and memory
    default boolean spins(KernelLaunch launch) {
        return false;
    }

    /// Returns how long the kernel runs, in virtual nanoseconds, from its start or, if it spins, from the moment it
    /// stops spinning.
    ///
    /// @param launch its arguments; the memory must not be touched
    default long durationNanos(KernelLaunch launch) {
        return 2_000;
    }

    /// Returns the memory that the kernel will use, for the reports of misuse.
    ///
    /// @param launch its arguments; the memory must not be touched
    default List<AddressRange> uses(KernelLaunch launch) {
        return List.of();
    }
}
