package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.spi.catalog.Catalog;

/// Uses a plug-in from a directory, with neither its classes nor its dependencies on the class path:
///
/// ```
/// java -Dcistern.plugins=DIR -Dcistern.allocator=NAME … io.cistern.examples.DropPlugin
/// ```
public final class DropPlugin {
    private static final int DEVICE = 0;

    private DropPlugin() {}

    /// Prints the entries that were found there, and the allocator that serves.
    public static void main(String[] arguments) {
        DeviceMemory memory = DeviceMemory.system();
        for (Catalog.Entry entry : memory.currents().catalog().entries()) {
            if (entry.origin().contains("sha256")) {
                System.out.printf("found %s%n", entry.name());
            }
        }
        Allocator current = memory.current(0);
        memory.free(memory.allocate(1 << 20, DEVICE, 0), 0);
        System.out.printf(
                "%s served %d allocation%n",
                current.name(), current.statistics(DEVICE).allocations());
    }
}
