package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Patterns;
import io.cistern.testkit.Seed;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Threads that share streams, each running its own [SharedStreamsProgram], with each allocator in stream
/// order, on the driver in the system property `cistern.testkit.driver`. `cistern.testkit.operations` sets the
/// number of operations of all threads together.
@Tag("streams")
public class SharedStreams {
    static final String OPERATIONS = "cistern.testkit.operations";
    private static final int THREADS = 4;
    private static final int STREAMS = 3;
    /// More than all threads need together, so that frees and reuse are the rule, not refusals.
    private static final long BYTES = 2L << 30;

    /// For JUnit.
    public SharedStreams() {}

    static List<String> specs() {
        return SeededScenarios.specs();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("specs")
    void threadsNeverHoldTheSameBytesNorSpoilEachOthers(String spec) throws Exception {
        try (CudaDriver driver = DriverUnderTest.open()) {
            try (DeviceMemory memory = DeviceMemory.builder(driver)
                    .catalog(DiscoveredCatalog.find())
                    .open()) {
                memory.setCurrent(spec);
                run(driver, memory);
                Allocator allocator = memory.current(0);
                assertThat(allocator.statistics(0).liveBlocks()).isZero();
                driver.devices().synchronize(0);
                allocator.trim(0, 0, TrimMode.WITHOUT_WAITING);
                assertThat(allocator.reservedBytes(0)).as("nothing is stranded").hasValue(0);
            }
            if (driver instanceof SimulatedGpu simulated) {
                assertThat(simulated.misuses()).isEmpty();
            }
        }
    }

    private static void run(CudaDriver driver, DeviceMemory memory) throws Exception {
        ConcurrentNavigableMap<Long, Long> ends = new ConcurrentSkipListMap<>();
        int operations = Integer.getInteger(OPERATIONS, 20_000) / THREADS;
        long[] streams = new long[STREAMS];
        for (int i = 0; i < STREAMS; i++) {
            streams[i] = driver.streams().create(0);
        }
        try (Patterns patterns = new Patterns(driver, 0);
                ExecutorService executor = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                long seed = Seed.current() + i;
                running.add(executor.submit(new SharedStreamsProgram(
                        driver, memory, patterns, ends, streams, seed, operations, BYTES / THREADS)));
            }
            for (Future<?> each : running) {
                each.get();
            }
            assertThat(patterns.mismatches()).as(Seed.describe(Seed.current())).isEmpty();
        } finally {
            for (long stream : streams) {
                memory.streamClosing(0, stream);
                driver.streams().destroy(0, stream);
            }
        }
    }
}
