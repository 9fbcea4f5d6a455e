package io.cistern.simulated;

import io.cistern.cuda.Modules.Grid;
import java.util.List;

/// One launch of a simulated kernel.
///
/// @param device the ordinal of the device on which the kernel runs
/// @param grid the shape of the launch
/// @param arguments the kernel's arguments as they were passed, except that a `Region` is replaced by its
///     address
/// @param memory the memory that the kernel can access
public record KernelLaunch(int device, Grid grid, List<Object> arguments, KernelMemory memory) {
    /// Copies the arguments.
    public KernelLaunch {
        arguments = List.copyOf(arguments);
    }

    /// Returns a numeric argument as a `long`.
    ///
    /// @param index the argument's index, from 0
    /// @throws IndexOutOfBoundsException if there is no such argument
    /// @throws ClassCastException if it is not a number
    public long longAt(int index) {
        return ((Number) arguments.get(index)).longValue();
    }

    /// Returns a numeric argument as an `int`.
    ///
    /// @param index the argument's index, from 0
    /// @throws IndexOutOfBoundsException if there is no such argument
    /// @throws ClassCastException if it is not a number
    public int intAt(int index) {
        return ((Number) arguments.get(index)).intValue();
    }
}
