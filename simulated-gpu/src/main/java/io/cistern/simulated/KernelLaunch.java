package io.cistern.simulated;

import io.cistern.cuda.Modules.Grid;
import java.util.List;

/// One launch of a simulated kernel.
///
/// @param device the device it runs on
/// @param grid its shape
/// @param arguments its arguments as they were given
/// @param memory the device's memory
public record KernelLaunch(int device, Grid grid, List<Object> arguments, KernelMemory memory) {
    /// Copies the arguments.
    public KernelLaunch {
        arguments = List.copyOf(arguments);
    }

    /// An argument of any integer type as a `long`.
    ///
    /// @param index from 0
    /// @throws IndexOutOfBoundsException without such an argument
    /// @throws ClassCastException if it is no number
    public long longAt(int index) {
        return ((Number) arguments.get(index)).longValue();
    }

    /// An argument of any integer type as an `int`.
    ///
    /// @param index from 0
    /// @throws IndexOutOfBoundsException without such an argument
    /// @throws ClassCastException if it is no number
    public int intAt(int index) {
        return ((Number) arguments.get(index)).intValue();
    }
}
