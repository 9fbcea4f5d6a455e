package io.cistern.simulated;

import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// The kernels that a simulated GPU can run, by name. Initially, these are the kernels of
/// [io.cistern.cuda.kernels] and those that each [SimulatedKernels] registers. Thread-safe.
public final class Kernels {
    private final Map<String, SimulatedKernel> byName = new ConcurrentHashMap<>();

    Kernels() {
        MemoryKernelFunctions.registerIn(this);
        ServiceLoader.load(SimulatedKernels.class).forEach(each -> each.register(this));
    }

    /// Adds a kernel, or replaces the one of that name. A program finds the kernel only if the text of the
    /// program's module has an entry of that name.
    ///
    /// @param name the name of the `.entry` in the module
    /// @param kernel the Java function
    public void register(String name, SimulatedKernel kernel) {
        byName.put(name, kernel);
    }

    @Nullable
    SimulatedKernel find(String name) {
        return byName.get(name);
    }
}
