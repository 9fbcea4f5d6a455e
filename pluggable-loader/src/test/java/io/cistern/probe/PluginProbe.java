package io.cistern.probe;

import io.cistern.Allocator;
import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.ServiceLoader;

/// A user's program, for a JVM of its own: tells what the loader finds and which allocator is current, allocates,
/// changes the current allocator, frees, closes, and tells what became of the memory. One fact a line.
public final class PluginProbe {
    private static final long MIB = 1 << 20;

    private PluginProbe() {}

    public static void main(String[] arguments) {
        Catalog catalog = ServiceLoader.load(CatalogProvider.class)
                .findFirst()
                .orElseThrow()
                .discover(PluginProbe.class.getClassLoader());
        for (Catalog.Entry entry : catalog.entries()) {
            say(entry.kind() + " " + entry.name() + " of " + entry.origin()
                    + entry.problem().map(problem -> " PROBLEM " + problem).orElse(""));
        }
        try (CudaDriver gpu =
                SimulatedGpu.builder().devices(1).capacityBytes(1024 * MIB).build()) {
            use(gpu, catalog);
        } catch (ConfigurationException e) {
            say("refused: " + e.getMessage());
        }
    }

    private static void use(CudaDriver gpu, Catalog catalog) {
        long before = gpu.memory().info(0).freeBytes();
        try (DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog).open()) {
            Catalog.Choice choice = catalog.choose(memory.environment());
            say("current: " + choice.spec() + ", " + choice.reason());
            Allocator first = memory.current(0);
            long one = memory.allocate(2 * MIB, 0, 0);
            long two = memory.allocate(4 * MIB, 0, 0);
            tell(first);
            memory.setCurrent("direct");
            memory.free(one, 0);
            long heldBytes = before - gpu.memory().info(0).freeBytes();
            memory.free(two, 0); // the last block of an allocator that has closed
            tell(first);
            say("held: " + heldBytes / MIB + " MiB");
        }
        say("lost: " + (before - gpu.memory().info(0).freeBytes()) + " bytes");
    }

    private static void tell(Allocator allocator) {
        AllocatorStatistics statistics = allocator.statistics(0);
        say("metered: " + allocator.name() + " allocations=" + statistics.allocations() + " frees=" + statistics.frees()
                + " requested=" + statistics.requestedBytes() / MIB + " MiB peak="
                + statistics.requestedPeakBytes() / MIB
                + " MiB");
    }

    private static void say(String fact) {
        System.out.println(fact);
    }
}
