package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.DiscoveredCatalog;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// The scenarios find an allocator that does not look at streams, and nothing in one that keeps no memory.
final class OrderMonteCarloTests {
    private static Catalog catalog() {
        return Catalog.of(List.of(new CarelessProvider()), List.of());
    }

    @Test
    void anAllocatorThatDoesNotLookAtStreamsIsFound() {
        assertThatThrownBy(() -> OrderMonteCarlo.run(catalog(), "careless", 0, 1000))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("--allocator careless --seed 0 --count ")
                .rootCause()
                .hasMessageContaining("words differ");
    }

    @Test
    void oneThatKeepsNoMemoryPasses() throws InterruptedException {
        OrderMonteCarlo.run(DiscoveredCatalog.find(), "direct", 0, 500);
    }

    private static final class CarelessProvider implements AllocatorProvider {
        @Override
        public String name() {
            return "careless";
        }

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new Careless(context.extension(CudaDriver.class).orElseThrow());
        }
    }

    /// Hands a freed block to any stream at once.
    private static final class Careless implements DeviceAllocator {
        private final Map<Long, Deque<Long>> idleBySize = new HashMap<>();
        private final CudaDriver driver;

        Careless(CudaDriver driver) {
            this.driver = driver;
        }

        @Override
        public synchronized long allocate(long byteSize, int device, long stream) {
            Deque<Long> idle = idleBySize.getOrDefault(byteSize, new ArrayDeque<>());
            return idle.isEmpty() ? driver.memory().allocate(device, byteSize) : idle.pop();
        }

        @Override
        public synchronized void free(long address, long byteSize, int device, long stream) {
            idleBySize.computeIfAbsent(byteSize, _ -> new ArrayDeque<>()).push(address);
        }

        @Override
        public synchronized void close() {
            idleBySize
                    .values()
                    .forEach(idle -> idle.forEach(address -> driver.memory().free(0, address)));
        }
    }
}
