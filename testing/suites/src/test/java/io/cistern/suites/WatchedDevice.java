package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.hazards.StreamHazards;
import io.cistern.testkit.DiscoveredCatalog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Device memory on the driver in the system property `cistern.testkit.driver` whose use of streams is checked. Kernels
/// hold its streams, so that nothing is ordered by having finished.
public final class WatchedDevice implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    public final DeviceMemory memory;
    public final CudaDriver driver;
    public final StreamHazards hazards;
    private final HeldStreams held;
    private final HangWatch watch;
    private final List<Long> streams = new ArrayList<>();

    /// @param spec the allocator's
    public WatchedDevice(String spec) {
        System.setProperty("cistern.check", "streams");
        System.setProperty("cistern.hazards", "list");
        try {
            memory = DeviceMemory.builder(DriverUnderTest.open())
                    .catalog(DiscoveredCatalog.find())
                    .open();
        } finally {
            System.clearProperty("cistern.check");
            System.clearProperty("cistern.hazards");
        }
        memory.setCurrent(spec);
        driver = memory.driver();
        hazards = StreamHazards.of(memory).orElseThrow();
        held = new HeldStreams(driver, 0);
        watch = new HangWatch(PATIENCE, held::giveUp);
    }

    /// Runs a program that holds streams.
    ///
    /// @throws AssertionError if the host waited for a held stream
    public void run(Runnable program) {
        watch.run(program);
    }

    /// Creates a stream that lasts until the next [#reset].
    public long stream() {
        long stream = driver.streams().create(0);
        streams.add(stream);
        return stream;
    }

    /// Creates a stream that is held until the next [#finish]. The host must not wait for the device meanwhile, nor
    /// load
    /// kernels or pin memory, which may wait for it.
    public long heldStream() {
        long stream = stream();
        held.hold(stream);
        return stream;
    }

    /// Lets one stream wait for another.
    public void order(long first, long second) {
        long event = driver.events().create(0);
        driver.events().record(0, event, first);
        driver.streams().await(0, second, event);
        driver.events().destroy(0, event);
    }

    /// Releases the streams and waits for all work.
    public void finish() {
        held.releaseAll();
    }

    /// Finishes, destroys the streams and forgets what was found.
    public void reset() {
        finish();
        for (long stream : streams) {
            memory.streamClosing(0, stream);
            driver.streams().destroy(0, stream);
        }
        streams.clear();
        hazards.clear();
    }

    @Override
    public void close() {
        reset();
        watch.close();
        held.close();
        memory.close();
        driver.close();
    }
}
