package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaDriver;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The situations find an allocator that does not look at streams, and nothing in one that keeps no memory.
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
            return new BrokenAllocators.IgnoresStreamOrder(
                    context.extension(CudaDriver.class).orElseThrow());
        }
    }
}
