package io.cistern.suites;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.hazards.StreamHazards;
import io.cistern.testkit.DiscoveredCatalog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Device memory whose use of streams is checked. Kernels hold its streams, so that nothing is ordered by having
/// finished.
public final class WatchedDevice implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    public final DeviceMemory memory;
    public final CudaDriver driver;
    public final StreamHazards hazards;
    private final List<HeldStreams> held = new ArrayList<>();
    private final HangWatch watch;
    private final List<StreamOf> streams = new ArrayList<>();

    private record StreamOf(int device, long raw) {}

    /// Opens the memory of device 0 of the driver in the system property `cistern.testkit.driver`.
    ///
    /// @param spec the allocator's
    public WatchedDevice(String spec) {
        this(spec, DriverUnderTest.open(), 1);
    }

    /// @param spec the allocator's
    /// @param driver closed with this
    /// @param devices how many devices have streams
    public WatchedDevice(String spec, CudaDriver driver, int devices) {
        System.setProperty("cistern.check", "streams");
        System.setProperty("cistern.hazards", "list");
        try {
            memory = DeviceMemory.builder(driver)
                    .catalog(DiscoveredCatalog.find())
                    .open();
        } finally {
            System.clearProperty("cistern.check");
            System.clearProperty("cistern.hazards");
        }
        memory.setCurrent(spec);
        this.driver = memory.driver();
        hazards = StreamHazards.of(memory).orElseThrow();
        for (int device = 0; device < devices; device++) {
            held.add(new HeldStreams(this.driver, device));
        }
        watch = new HangWatch(PATIENCE, () -> held.forEach(HeldStreams::giveUp));
    }

    /// Runs a program that holds streams.
    ///
    /// @throws AssertionError if the host waited for a held stream
    public void run(Runnable program) {
        watch.run(program);
    }

    /// Creates a stream of device 0 that lasts until the next [#reset].
    public long stream() {
        return stream(0);
    }

    private long stream(int device) {
        long stream = driver.streams().create(device);
        streams.add(new StreamOf(device, stream));
        return stream;
    }

    /// Creates a stream of device 0 that is held until the next [#finish]. The host must not wait for the device
    /// meanwhile, nor load kernels or pin memory, which may wait for it.
    public long heldStream() {
        return heldStream(0);
    }

    /// Does the same on any device.
    public long heldStream(int device) {
        long stream = stream(device);
        held.get(device).hold(stream);
        return stream;
    }

    /// Lets a stream of device 0 wait for another.
    public void order(long first, long second) {
        order(0, first, 0, second);
    }

    /// Lets a stream wait for another.
    public void order(int firstDevice, long first, int secondDevice, long second) {
        long event = driver.events().create(firstDevice);
        driver.events().record(firstDevice, event, first);
        driver.streams().await(secondDevice, second, event);
        driver.events().destroy(firstDevice, event);
    }

    /// Releases the streams and waits for all work.
    public void finish() {
        held.forEach(HeldStreams::release); // first all: a device may wait for another
        held.forEach(HeldStreams::releaseAll);
    }

    /// Finishes, destroys the streams and forgets what was found.
    public void reset() {
        finish();
        for (StreamOf each : streams) {
            memory.streamClosing(each.device, each.raw);
            driver.streams().destroy(each.device, each.raw);
        }
        streams.clear();
        hazards.clear();
    }

    @Override
    public void close() {
        reset();
        watch.close();
        held.forEach(HeldStreams::close);
        memory.close();
        driver.close();
    }
}
