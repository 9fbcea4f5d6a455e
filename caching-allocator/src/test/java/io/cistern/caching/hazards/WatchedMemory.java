package io.cistern.caching.hazards;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Graphs;
import io.cistern.hazards.HazardObserver;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazards;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.List;

/// Device memory on a simulated GPU, whose use of streams is checked. Its streams are at work until the end, so that
/// nothing is ordered by having finished.
final class WatchedMemory implements AutoCloseable {
    private static final long AN_HOUR = 3_600_000_000_000L;

    final SimulatedGpu gpu;
    final DeviceMemory memory;
    final StreamHazards hazards;

    WatchedMemory(String spec, String report) {
        this(
                spec,
                report,
                SimulatedGpu.builder().devices(1).capacityBytes(1L << 30).build());
    }

    WatchedMemory(String spec, String report, SimulatedGpu gpu) {
        this.gpu = gpu;
        HazardObserver observer = new HazardObserver();
        System.setProperty("cistern.hazards", report);
        try {
            memory = DeviceMemory.builder(observer.around(gpu))
                    .catalog(DiscoveredCatalog.find())
                    .open();
        } finally {
            System.clearProperty("cistern.hazards");
        }
        observer.observe(memory);
        memory.setCurrent(spec);
        hazards = StreamHazards.of(memory).orElseThrow();
    }

    long busyStream() {
        long stream = memory.driver().streams().create(0);
        gpu.keepBusy(0, stream, AN_HOUR);
        return stream;
    }

    long allocate(long byteSize, long stream) {
        return memory.allocate(byteSize, 0, stream);
    }

    void fill(long address, long byteSize, long stream) {
        memory.driver().copies().fillBytes(0, address, (byte) 1, byteSize, stream);
    }

    void copy(long target, long source, long byteSize, long stream) {
        memory.driver().copies().onDevice(0, target, source, byteSize, stream);
    }

    /// Lets one stream wait for another.
    void order(long first, long second) {
        long event = memory.driver().events().create(0);
        memory.driver().events().record(0, event, first);
        memory.driver().streams().await(0, second, event);
        memory.driver().events().destroy(0, event);
    }

    /// Waits for a stream, whose work has come to its end.
    void finish(long stream) {
        gpu.passTime(AN_HOUR);
        memory.driver().streams().synchronize(0, stream);
    }

    /// Captures work of two streams, of which the second is forked from the first and joins it again.
    ///
    /// @param launches whether the graph is launched, too
    void captured(long first, long second, boolean launches, Runnable work) {
        Graphs graphs = memory.driver().graphs();
        graphs.beginCapture(0, first, CaptureMode.RELAXED);
        order(first, second);
        work.run();
        order(second, first);
        long graph = graphs.endCapture(0, first);
        if (launches) {
            long executable = graphs.instantiate(0, graph, false);
            graphs.launch(0, executable, first);
        }
    }

    /// Frees a block after all work of a stream so far.
    void freeAfter(long address, long stream) {
        long event = memory.driver().events().create(0);
        memory.driver().events().record(0, event, stream);
        memory.freeAfter(address, event);
        memory.driver().events().destroy(0, event);
    }

    List<StreamHazard.Kind> kinds() {
        return hazards.list().stream().map(StreamHazard::kind).toList();
    }

    @Override
    public void close() {
        gpu.passTime(AN_HOUR);
        memory.close();
        gpu.close();
    }
}
