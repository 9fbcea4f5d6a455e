package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.names.ThreadNames;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/// What objects say of themselves in logs.
class NamesForPeopleTests {
    @Test
    @SuppressWarnings("try") // what is closed has a name, too
    void deviceMemoryNamesItsDriverAndWhatIsOpen() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
                        .open()) {
            assertThat(memory).hasToString("DeviceMemory[simulated GPU, driver API 13.0; open: []]");
            memory.open("direct");
            assertThat(memory).hasToString("DeviceMemory[simulated GPU, driver API 13.0; open: [direct]]");
        }
    }

    @Test
    void aScopeNamesItsAllocatorAndItsThread() throws Exception {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
                        .open()) {
            Allocator direct = memory.open("direct");
            Thread virtual = Thread.ofVirtual().unstarted(() -> {});
            assertThat(ThreadNames.of(virtual)).isEqualTo("#" + virtual.threadId());
            Thread.Builder.OfPlatform thread = Thread.ofPlatform().name("worker-1");
            List<String> names = new CopyOnWriteArrayList<>();
            thread.start(() -> {
                        Scope scope = direct.enter();
                        names.add(scope.toString());
                        scope.close();
                        names.add(scope.toString());
                    })
                    .join();
            assertThat(names)
                    .containsExactly("Scope[direct, thread worker-1]", "Scope[direct, thread worker-1, closed]");
        }
    }

    @Test
    void aSimulatedGpuNamesItsDevices() {
        try (SimulatedGpu gpu =
                SimulatedGpu.builder().devices(2).capacityBytes(1 << 20).build()) {
            assertThat(gpu).hasToString("SimulatedGpu[2 devices of 1048576 bytes]");
        }
    }
}
