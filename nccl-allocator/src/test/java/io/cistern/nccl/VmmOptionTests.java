package io.cistern.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.caching.CachingProvider;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How the options of `vmm` are written, and what comes of them.
class VmmOptionTests {
    private static final long MIB = 1L << 20;
    private static final int STREAM = 1;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(
                    List.of(new CachingProvider()), List.of(new VmmSourceProvider(), new NcclSourceProvider())))
            .open();

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void whatCachingDoesNotKnowIsTheSources() {
        for (String spec : List.of(
                "caching:source=vmm,location=host_numa",
                "caching:source=\"vmm:location=host_numa\"",
                "caching:location=host_numa,splits=false,source=vmm",
                "vmm:location=host_numa")) {
            long free = gpu.memory().freeBytes(0);
            try (MemoryPool pool = memory.pools().open(spec)) {
                long block = pool.allocate(MIB, 0, STREAM);
                assertThat(gpu.memory().freeBytes(0))
                        .as(spec + " takes none of the device")
                        .isEqualTo(free);
                memory.free(block, STREAM);
            }
        }
    }

    @Test
    void whatNobodyKnowsIsRefusedWithTheNearestOfBoth() {
        assertThatThrownBy(() -> memory.open("caching:source=vmm,locatoin=device"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("'caching' has no option 'locatoin'")
                .hasMessageContaining("location, ");
        assertThatThrownBy(() -> memory.open("caching:source=nccl,location=host_numa"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("'caching' has no option 'location'");
    }

    @Test
    void addressesHaveTheAlignmentAskedFor() {
        try (MemoryPool pool = memory.pools().open("caching:source=\"vmm:alignment=64MiB\",splits=false")) {
            long first = pool.allocate(MIB, 0, STREAM);
            long second = pool.allocate(MIB, 0, STREAM);
            assertThat(first % (64 * MIB)).isZero();
            assertThat(second % (64 * MIB)).isZero();
            memory.free(first, STREAM);
            memory.free(second, STREAM);
        }
        for (String wrong : List.of("3MiB", "2GiB", "0")) {
            assertThatThrownBy(() -> memory.open("vmm:alignment=" + wrong))
                    .isInstanceOf(ConfigurationException.class)
                    .hasMessageContaining("power of two");
        }
    }
}
