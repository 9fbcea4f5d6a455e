package io.cistern.examples;

import io.cistern.Allocators;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Streams;

/// Shows three ways to choose the allocator at startup; none changes the code that allocates.
///
/// 1. A property: `java -Dcistern.allocator=async …`
/// 2. A variable of the environment: `CISTERN_ALLOCATOR=async java …`
/// 3. One line: `Allocators.setCurrent("async")`, here for the argument `async`. It also works later, while
///    blocks are alive.
public final class SwapAtStartup {
    private SwapAtStartup() {}

    /// Prints the allocator that serves.
    public static void main(String[] arguments) {
        if (arguments.length > 0) {
            Allocators.setCurrent(arguments[0]);
        }
        try (DeviceBuffer buffer = DeviceBuffer.allocate(1 << 20, Streams.LEGACY_DEFAULT)) {
            System.out.printf("%d bytes from %s%n", buffer.byteSize(), Allocators.current());
        }
    }
}
