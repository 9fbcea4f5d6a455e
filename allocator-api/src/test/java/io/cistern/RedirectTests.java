package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.ConfigurationException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Options of one allocator that ask for another.
class RedirectTests {
    private final ArrayAllocatorProvider array = new ArrayAllocatorProvider("array");
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new Choosing(), new Around(), array), List.of(new DriverSource.Linear())))
            .open();

    /// Asks for the allocator of the option `backend`.
    private static final class Choosing implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "choosing";
        }

        @Override
        public Optional<AllocatorSpec> redirect(AllocatorOptions options) {
            return options.text("backend").map(AllocatorSpec::parse);
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            throw new IllegalStateException("opened itself");
        }
    }

    private static final class Around implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public String name() {
            return "around";
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new AllocatorAdaptor(context.upstream("choosing:backend=array")) {};
        }
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void theOtherIsOpenedUnderItsOwnName() {
        try (Allocator opened = memory.open("choosing:backend=array");
                MemoryPool pool = memory.pools().open("choosing:backend=array")) {
            assertThat(opened.name()).isEqualTo("array");
            assertThat(opened.spec())
                    .isEqualTo(new AllocatorSpec("array", java.util.Map.of(), "choosing:backend=array"));
            assertThat(pool.name()).isEqualTo("array");
            memory.free(opened.allocate(100, 0, 0), 0);
            memory.free(pool.allocate(100, 0, 0), 0);
        }
    }

    @Test
    void itIsOneAllocatorForOneSpec() {
        memory.setCurrent("choosing:backend=array");
        Allocator first = memory.current(0);
        memory.setCurrent("choosing:backend=array");
        assertThat(memory.current(0)).isSameAs(first);
    }

    @Test
    void anUpstreamIsRedirectedToo() {
        try (Allocator around = memory.open("around")) {
            assertThat(around.name()).isEqualTo("around");
            memory.free(around.allocate(100, 0, 0), 0);
        }
        assertThat(array.log).isNotEmpty();
    }

    @Test
    void whatNobodyReadIsRefused() {
        assertThatThrownBy(() -> memory.open("choosing:backend=array,speed=9"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("'speed'")
                .satisfies(failure -> assertThat(failure.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .contains("while choosing:backend=array,speed=9 was opened"));
        assertThatThrownBy(() -> memory.open("choosing:backend=aray"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("array");
    }
}
