package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.internal.reclaim.ReserveWatch;
import io.cistern.jvm.LogOf;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/// The thread that keeps a reserve free, while device memory closes.
final class ReserveWatchTests {
    @RegisterExtension
    private final LogOf log = new LogOf(ReserveWatch.class.getName());

    /// It may outlive the application that made it.
    @Test
    void itKeepsNoClassLoaderOfItsMaker() throws Exception {
        ClassLoader loader = new ClassLoader() {};
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(), List.of()))
                        .open()) {
            Thread maker = Thread.ofPlatform().unstarted(() -> memory.limits().setReserve(0, 1 << 20));
            maker.setContextClassLoader(loader);
            maker.start();
            maker.join();
            assertThat(Thread.getAllStackTraces().keySet())
                    .filteredOn(thread -> thread.getName().equals("cistern-reserve"))
                    .isNotEmpty()
                    .noneMatch(thread -> loader.equals(thread.getContextClassLoader()));
        }
    }

    /// The program may close the driver at once.
    @Test
    void itSaysNothingAfterTheClose() throws InterruptedException {
        for (int round = 0; round < 50; round++) {
            try (SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
                    DeviceMemory memory = DeviceMemory.builder(gpu)
                            .catalog(Catalog.of(List.of(), List.of()))
                            .open()) {
                memory.limits().setReserve(0, 1 << 20);
            }
        }
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().equals("cistern-reserve")) {
                thread.join(Duration.ofSeconds(1)); // It ends by itself; one of another test may not.
            }
        }
        assertThat(log.messages()).isEmpty();
    }
}
