package io.cistern.cuda.ffm;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The driver in a loaded library, made of one object for each facet.
///
/// No lock is held during a call, so the driver may be closed only when no thread is in a call.
final class NativeDriver implements CudaDriver {
    private final Startup startup;
    private final Contexts contexts;
    private final NativeDevices devices;
    private final NativeMemoryPools pools;
    private final NativeVirtualMemory virtualMemory;
    private final Facets facets;
    private volatile @Nullable DriverCapabilities capabilities;

    NativeDriver(Startup startup) {
        this.startup = startup;
        DriverLibrary library = startup.library();
        contexts = new Contexts(library, startup.devices());
        devices = new NativeDevices(library, contexts);
        pools = new NativeMemoryPools(library, contexts);
        virtualMemory = new NativeVirtualMemory(library, contexts);
        NativeGraphs graphs = new NativeGraphs(library, contexts);
        facets = new Facets(
                devices,
                new NativeLinearMemory(library, contexts),
                new NativeUnifiedMemory(library, contexts),
                pools,
                virtualMemory,
                new NativeCopies(library, contexts),
                new NativeStreams(library, contexts, graphs),
                new NativeEvents(library, contexts),
                graphs,
                new NativeModules(library, contexts),
                new NativePeers(library, contexts),
                new NativeSharing(library, contexts));
    }

    @Override
    public Facets facets() {
        return facets;
    }

    @Override
    public boolean simulated() {
        return false;
    }

    @Override
    public String description() {
        return startup.library().name() + ", driver API " + Startup.versionName(startup.version());
    }

    @Override
    public int version() {
        return startup.version();
    }

    @Override
    public DriverCapabilities capabilities() {
        DriverCapabilities known = capabilities;
        if (known == null) {
            // Two threads may both probe; their results are equal.
            known = new CapabilityProbe(startup, devices, pools, virtualMemory).probe();
            capabilities = known;
        }
        return known;
    }

    @Override
    public CallCounts calls() {
        return startup.library().counts();
    }

    @Override
    public void close() {
        contexts.close();
    }

    Map<DriverCall, DriverFunction> bound() {
        return startup.library().bound();
    }

    @Override
    public String toString() {
        return description();
    }
}
