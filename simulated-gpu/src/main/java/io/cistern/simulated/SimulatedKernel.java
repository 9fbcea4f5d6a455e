package io.cistern.simulated;

import io.cistern.cuda.LinearMemory.AddressRange;
import java.util.List;

/// A kernel of the simulated GPU: a Java function with the effect of a launch on memory.
///
/// All methods are called under the machine's lock: [#uses] and [#durationNanos] by the thread that launches
/// the kernel, the others by the thread that advances virtual time. They must be quick, must not call the
/// driver and must not block.
@FunctionalInterface
public interface SimulatedKernel {
    /// Does the kernel's work. Called once, at the virtual time at which the kernel ends.
    ///
    /// @param launch the launch's arguments and memory
    void run(KernelLaunch launch);

    /// Returns whether a kernel that has begun must keep spinning. Called repeatedly until it returns false.
    ///
    /// @param launch the launch's arguments and memory
    default boolean spins(KernelLaunch launch) {
        return false;
    }

    /// Returns how long the kernel runs, in virtual nanoseconds. If the kernel spins, the time counts from the
    /// moment when it stops spinning.
    ///
    /// @param launch the launch's arguments; its memory must not be accessed
    default long durationNanos(KernelLaunch launch) {
        return 2_000;
    }

    /// Returns the memory that the kernel will use, so that its misuse can be [reported][SimulatedGpu#misuses].
    ///
    /// @param launch the launch's arguments; its memory must not be accessed
    default List<AddressRange> uses(KernelLaunch launch) {
        return List.of();
    }
}
