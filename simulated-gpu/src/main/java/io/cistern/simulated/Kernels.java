package io.cistern.simulated;

import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// The kernels that a simulated GPU can run, by name. Those of [io.cistern.cuda.kernels] are there from the start,
/// and those of each [SimulatedKernels]. Safe for use by many threads.
public final class Kernels {
    private final Map<String, SimulatedKernel> byName = new ConcurrentHashMap<>();

    Kernels() {
        MemoryKernelFunctions.registerIn(this);
        ServiceLoader.load(SimulatedKernels.class).forEach(each -> each.register(this));
    }

    /// Adds a kernel or replaces the one of that name. A module's text must have an entry of the name for it to
    /// be found.
    ///
    /// @param name the name of the `.entry` in the module
    /// @param kernel what it does
    public void register(String name, SimulatedKernel kernel) {
        byName.put(name, kernel);
    }

    @Nullable
    SimulatedKernel find(String name) {
        return byName.get(name);
    }
}
