package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.EnumSet;
import java.util.List;
import java.util.ServiceLoader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Adaptors by name.
final class AdaptorSpecTests {
    private SimulatedGpu gpu;
    private DeviceMemory memory;

    @BeforeEach
    void open() {
        gpu = SimulatedGpu.builder().devices(1).capacityBytes(1L << 30).build();
        memory = DeviceMemory.builder(gpu).catalog(catalog()).open();
    }

    private static Catalog catalog() {
        return Catalog.of(
                ServiceLoader.load(AllocatorProvider.class).stream()
                        .map(ServiceLoader.Provider::get)
                        .toList(),
                ServiceLoader.load(SegmentSourceProvider.class).stream()
                        .map(ServiceLoader.Provider::get)
                        .toList());
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @Test
    void adaptorsNestAndEachIsFoundFromTheOutside() {
        try (Allocator allocator = memory.open(AdaptorsConformanceTests.NESTED)) {
            long address = allocator.allocate(1000, 0, 0);
            assertThat(address % 4096).isZero();
            assertThat(allocator.extension(LimitAllocator.class).orElseThrow().usedBytes(0))
                    .isEqualTo(1000 + 4096 - 256);
            assertThat(allocator
                            .extension(TrackingAllocator.class)
                            .orElseThrow()
                            .liveBlocks())
                    .hasSize(1);
            assertThat(allocator
                            .extension(StatisticsAllocator.class)
                            .orElseThrow()
                            .statistics("")
                            .requestedBytes())
                    .isEqualTo(1000);
            memory.free(address, 0);
            assertThat(allocator.extension(LimitAllocator.class).orElseThrow().usedBytes(0))
                    .isZero();
        }
    }

    @Test
    void aLimitGivenBySpecHolds() {
        try (Allocator allocator = memory.open("limit:bytes=1MiB,upstream=\"caching\"")) {
            assertThatThrownBy(() -> allocator.allocate((1 << 20) + 1, 0, 0))
                    .isInstanceOf(DeviceOutOfMemoryException.class)
                    .hasMessageContaining("limit of 1048576 bytes, 0 of them in use");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "limit:bytes=1GiB",
                "aligned:alignment=512",
                "statistics",
                "tracking",
                "retry",
                "confined",
                "prefetch",
                "events:threshold=1"
            })
    void everySegmentSourceIsAnUpstreamToo(String adaptor) {
        for (SegmentSourceProvider source : ServiceLoader.load(SegmentSourceProvider.class)) {
            String spec = adaptor + (adaptor.contains(":") ? "," : ":") + "upstream=" + source.name();
            if (!source.availability(memory.environment()).available()) {
                continue;
            }
            try (Allocator allocator = memory.open(spec)) {
                long address = allocator.allocate(1000, 0, 0);
                assertThat(address).as(spec).isNotZero();
                memory.free(address, 0);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "limit:bytes=1",
                "aligned:alignment=512",
                "statistics",
                "tracking",
                "retry",
                "confined",
                "prefetch",
                "events:threshold=1",
                "logging:file=never.csv"
            })
    void theUpstreamMustBeNamed(String spec) {
        assertThatThrownBy(() -> memory.open(spec))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("needs the option 'upstream', for example upstream=\"caching\"");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            limit:upstream=caching                            | needs the option 'bytes'
            aligned:upstream=caching                          | needs the option 'alignment'
            aligned:alignment=300,upstream=caching            | power of two
            events:upstream=caching                           | needs the option 'threshold'
            logging:upstream=caching                          | needs the option 'file'
            logging:file=/none/of/this.csv,upstream=caching   | /none/of/this.csv
            tracking:frames=-1,upstream=caching               | frames
            retry:attempts=0,upstream=caching                 | attempts
            limit:bytes=1,upstream=cachin                     | cachin
            limit:bytes=1,byte=2,upstream=caching             | byte
            """)
    void aWrongSpecNamesTheMistakeAndLeavesNothingOpen(String spec, String named) {
        assertThatThrownBy(() -> memory.open(spec))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining(named);
        assertThat(memory.allocators()).isEmpty();
    }

    @Test
    void retryHasTheUpstreamGiveBackWhatIsIdle() {
        memory.close();
        memory = DeviceMemory.builder(gpu)
                .catalog(catalog())
                .reclaimSteps(EnumSet.complementOf(EnumSet.of(ReclaimStep.OTHER_ALLOCATORS)))
                .open();
        long most = (1L << 30) * 3 / 4;
        Allocator hoarder = memory.open("caching");
        memory.free(hoarder.allocate(most, 0, 0), 0);
        try (Allocator plain = memory.open("direct");
                Allocator retrying = memory.open("retry:attempts=2,upstream=caching")) {
            assertThatThrownBy(() -> plain.allocate(most, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThatThrownBy(() -> retrying.allocate(most, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
            hoarder.trim(0, 0, TrimMode.WITHOUT_WAITING);
            memory.free(retrying.allocate(most, 0, 0), 0);
        }
    }

    /// The driver refuses to wait for the work of the device, as it does while streams are captured.
    @Test
    void aCaptureThatBeginsMeanwhileLeavesTheCloseForLater() {
        long free = gpu.memory().freeBytes(0);
        for (String spec : List.of("limit:bytes=1GiB,upstream=caching", "caching")) {
            for (Allocator each : List.of(memory.open(spec), memory.pools().open(spec))) {
                memory.free(each.allocate(1 << 20, 0, 0), 0);
                gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
                each.close();
                assertThat(each.isDrained()).isTrue();
                assertThat(memory.allocators()).doesNotContain(each);
                assertThat(gpu.memory().freeBytes(0)).as(spec).isEqualTo(free);
            }
        }
    }
}
