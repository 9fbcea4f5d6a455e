package io.cistern.cuda.ffm;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.Copies;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.Events;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Modules;
import io.cistern.cuda.Peers;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.Streams;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.cuda.VirtualMemory;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The driver in a loaded library, made of one object for each facet.
///
/// No lock is held during a call, so the driver may be closed only when no thread is in a call.
final class NativeDriver implements CudaDriver {
    private final Startup startup;
    private final Contexts contexts;
    private final NativeDevices devices;
    private final NativeLinearMemory memory;
    private final NativeUnifiedMemory unifiedMemory;
    private final NativeMemoryPools pools;
    private final NativeVirtualMemory virtualMemory;
    private final NativeCopies copies;
    private final NativeStreams streams;
    private final NativeEvents events;
    private final NativeGraphs graphs;
    private final NativeModules modules;
    private final NativePeers peers;
    private final NativeSharing sharing;
    private volatile @Nullable DriverCapabilities capabilities;

    NativeDriver(Startup startup) {
        this.startup = startup;
        DriverLibrary library = startup.library();
        contexts = new Contexts(library, startup.devices());
        devices = new NativeDevices(library, contexts);
        memory = new NativeLinearMemory(library, contexts);
        unifiedMemory = new NativeUnifiedMemory(library, contexts);
        pools = new NativeMemoryPools(library, contexts);
        virtualMemory = new NativeVirtualMemory(library, contexts);
        copies = new NativeCopies(library, contexts);
        graphs = new NativeGraphs(library, contexts);
        streams = new NativeStreams(library, contexts, graphs);
        events = new NativeEvents(library, contexts);
        modules = new NativeModules(library, contexts);
        peers = new NativePeers(library, contexts);
        sharing = new NativeSharing(library, contexts);
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
    public Devices devices() {
        return devices;
    }

    @Override
    public LinearMemory memory() {
        return memory;
    }

    @Override
    public UnifiedMemory unifiedMemory() {
        return unifiedMemory;
    }

    @Override
    public MemoryPools pools() {
        return pools;
    }

    @Override
    public VirtualMemory virtualMemory() {
        return virtualMemory;
    }

    @Override
    public Copies copies() {
        return copies;
    }

    @Override
    public Streams streams() {
        return streams;
    }

    @Override
    public Events events() {
        return events;
    }

    @Override
    public Graphs graphs() {
        return graphs;
    }

    @Override
    public Modules modules() {
        return modules;
    }

    @Override
    public Peers peers() {
        return peers;
    }

    @Override
    public Sharing sharing() {
        return sharing;
    }

    @Override
    public CallCounts calls() {
        return startup.library().counts();
    }

    @Override
    public void close() {
        contexts.close();
    }

    /// Returns the functions that the facets bound.
    Map<DriverCall, DriverFunction> bound() {
        return startup.library().bound();
    }

    @Override
    public String toString() {
        return description();
    }
}
