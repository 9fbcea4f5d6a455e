package io.cistern.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.core.instrument.search.RequiredSearch;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The meters of a device memory.
final class DeviceMemoryMetricsTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    private final DeviceMemory memory = open(gpu);
    private final long stream = gpu.streams().create(DEVICE);
    private final MeterRegistry registry = new SimpleMeterRegistry();

    private static DeviceMemory open(SimulatedGpu gpu) {
        DeviceMemory opened = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        opened.setCurrent("caching");
        return opened;
    }

    private static <P> List<P> all(Class<P> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @AfterEach
    void close() {
        memory.close();
    }

    private long allocate(long byteSize) {
        return memory.allocate(byteSize, DEVICE, stream);
    }

    private void free(long address) {
        memory.free(address, stream);
    }

    private RequiredSearch meter(String name) {
        return registry.get(name).tags("memory", "1", "device", "0", "allocator", "caching", "pool", "none");
    }

    @Test
    void gaugesAndCountersFollowTheAllocator() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            long address = allocate(3 * MIB);
            free(allocate(MIB));
            assertThat(meter("cistern.memory.requested").gauge().value()).isEqualTo(3.0 * MIB);
            assertThat(meter("cistern.memory.requested").gauge().getId().getBaseUnit())
                    .isEqualTo("bytes");
            assertThat(meter("cistern.memory.requested.peak").gauge().value()).isEqualTo(4.0 * MIB);
            assertThat(meter("cistern.memory.reserved").gauge().value()).isGreaterThanOrEqualTo(4.0 * MIB);
            assertThat(meter("cistern.memory.largest.free").gauge().value()).isGreaterThanOrEqualTo(MIB);
            assertThat(meter("cistern.memory.stranded").gauge().value()).isNotNegative();
            assertThat(meter("cistern.blocks.live").gauge().value()).isOne();
            assertThat(meter("cistern.allocations").functionCounter().count()).isEqualTo(2);
            assertThat(meter("cistern.frees").functionCounter().count()).isOne();
            assertThat(meter("cistern.memory.allocated").functionCounter().count())
                    .isEqualTo(4.0 * MIB);
            free(address);
        }
    }

    @Test
    void aDeviceHasItsTotalAndItsFreeMemory() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            long address = allocate(3 * MIB);
            assertThat(registry.get("cistern.device.memory.total").gauge().value())
                    .isEqualTo(256.0 * MIB);
            assertThat(registry.get("cistern.device.memory.free").gauge().value())
                    .isEqualTo(gpu.memory().info(DEVICE).freeBytes());
            free(address);
        }
    }

    @Test
    void droppedBuffersAreMeasuredAtTheLevelsThatWatchThem() throws Exception {
        try (DeviceMemory watched = DeviceMemory.builder(gpu)
                        .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                        .leakLevel(LeakLevel.SITES)
                        .open();
                DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(watched);
                DeviceMemoryMetrics unwatched = DeviceMemoryMetrics.of(memory)) {
            watched.setCurrent("caching");
            metrics.bindTo(registry);
            unwatched.bindTo(registry);
            assertThat(dropped("1")).isZero();
            assertThat(dropped("2")).isNaN();
            DeviceBuffer.allocate(watched, 4321, DEVICE, stream);
            for (int tries = 0; tries < 2000 && dropped("1") == 0; tries++) {
                System.gc();
                Thread.sleep(5);
            }
            assertThat(dropped("1")).isEqualTo(4321);
        }
    }

    private double dropped(String memory) {
        return registry.get("cistern.memory.dropped")
                .tags("memory", memory, "device", "0")
                .gauge()
                .value();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "request"})
    void poolsOpenedAgainAndAgainShareTheirSeries(String tag) {
        Set<Meter.Id> series = new HashSet<>();
        registry.config().onMeterAdded(meter -> series.add(meter.getId()));
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            Set<Integer> counts = new HashSet<>();
            for (int request = 0; request < 20; request++) {
                try (MemoryPool pool = MemoryPool.builder(memory).tag(tag).open()) {
                    free(pool.allocate(MIB, DEVICE, stream));
                    assertThat(registry.get("cistern.allocators").gauge().value())
                            .isEqualTo(2);
                }
                assertThat(registry.get("cistern.allocators").gauge().value()).isOne();
                counts.add(series.size());
            }
            assertThat(counts).hasSize(1);
        }
    }

    /// A scrape under way may find a meter twice that is removed and added again.
    @Test
    void aPoolOpenedAgainContinuesItsSeries() {
        List<Meter.Id> removed = new ArrayList<>();
        registry.config().onMeterRemoved(meter -> removed.add(meter.getId()));
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            for (int times = 1; times <= 3; times++) {
                try (MemoryPool pool = MemoryPool.builder(memory)
                        .tag("request")
                        .limitBytes(times * MIB)
                        .open()) {
                    long address = pool.allocate(1000, DEVICE, stream);
                    assertThat(registry.get("cistern.allocators").gauge().value())
                            .isEqualTo(2);
                    assertThat(limitOf("request").value()).isEqualTo((double) times * MIB);
                    assertThat(ofRequests("cistern.blocks.live").gauge().value())
                            .isOne();
                    assertThat(ofRequests("cistern.allocations")
                                    .functionCounter()
                                    .count())
                            .isEqualTo(times);
                    free(address);
                }
            }
            assertThat(removed).isEmpty();
        }
    }

    private RequiredSearch ofRequests(String name) {
        return registry.get(name).tag("pool", "request");
    }

    @Test
    void metersComeAndGoWithTheirAllocators() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            try (MemoryPool pool = MemoryPool.builder(memory).tag("gradients").open();
                    Allocator _ = memory.open("caching")) {
                assertThat(registry.get("cistern.allocators").gauge().value()).isEqualTo(3);
                free(pool.allocate(MIB, DEVICE, stream));
                assertThat(registry.get("cistern.allocations")
                                .tag("pool", "gradients")
                                .functionCounter()
                                .count())
                        .isOne();
                assertThat(registry.find("cistern.memory.requested")
                                .tag("allocator", "caching#2")
                                .gauge())
                        .isNotNull();
            }
            assertThat(registry.get("cistern.allocators").gauge().value()).isOne();
            assertThat(registry.find("cistern.memory.requested").gauges()).hasSize(1);
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void eventsAreCounted() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.withSlowAllocations(memory, Duration.ZERO)) {
            metrics.bindTo(registry);
            free(allocate(8 * MIB));
            memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            long library = gpu.memory().allocate(DEVICE, 20 * MIB);
            assertThatThrownBy(() -> allocate(250 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            gpu.memory().free(DEVICE, library);
            assertThat(registry.get("cistern.allocation.slow")
                            .tags("device", "0", "allocator", "caching")
                            .timer()
                            .count())
                    .isOne();
            assertThat(registry.get("cistern.trims").timer().count()).isOne();
            assertThat(registry.get("cistern.out.of.memory")
                            .tags("device", "0", "allocator", "caching", "cause", "memory")
                            .counter()
                            .count())
                    .isOne();
            assertThat(registry.get("cistern.reclaims").timers())
                    .extracting(timer -> timer.getId().getTag("step"))
                    .contains("trim")
                    .doesNotContain("callbacks", "lending", "other_allocators", "spill");
            assertThat(registry.getMeters())
                    .allSatisfy(meter -> assertThat(meter.getId().getDescription())
                            .as(meter.getId().getName())
                            .isNotBlank());
        }
        assertThatThrownBy(() -> DeviceMemoryMetrics.withSlowAllocations(memory, Duration.ofNanos(-1)))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void refusalsAreCountedWithoutObservingBlocks() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            free(allocate(1000));
            assertThat(registry.get("cistern.allocators").gauge().value()).isOne();
            assertThat(registry.get("cistern.out.of.memory").counters())
                    .as("there before the first refusal, which an alarm would miss otherwise")
                    .hasSize(3);
            assertThat(refusals("memory")).isZero();
            long most = allocate(200 * MIB);
            assertThatThrownBy(() -> allocate(100 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            free(most);
            assertThat(refusals("memory")).isOne();
            assertThatThrownBy(() -> allocate(300 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(refusals("memory")).isOne();
            assertThat(refusals("too_large")).isOne();
            assertThat(refusals("limit")).isZero();
            assertThat(registry.find("cistern.allocation.slow").timer()).isNull();
        }
    }

    private double refusals(String cause) {
        return registry.get("cistern.out.of.memory")
                .tag("cause", cause)
                .counter()
                .count();
    }

    @Test
    void refusalsByALimitAreNoFullDevice() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            assertThat(registry.get("cistern.device.memory.limit").gauge().value())
                    .isEqualTo(256.0 * MIB);
            memory.limits().device(DEVICE).setByteSize(8 * MIB);
            assertThat(registry.get("cistern.device.memory.limit").gauge().value())
                    .isEqualTo(8.0 * MIB);
            assertThatThrownBy(() -> allocate(9 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            long address = allocate(5 * MIB);
            assertThatThrownBy(() -> allocate(5 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            free(address);
            assertThat(refusals("limit")).isOne();
            assertThat(refusals("too_large")).isOne();
            assertThat(refusals("memory")).isZero();
            memory.setCurrent("caching:max_bytes=8MiB");
            memory.limits().device(DEVICE).lift();
            assertThatThrownBy(() -> allocate(9 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(registry.get("cistern.out.of.memory")
                            .tags("allocator", "caching:max_bytes=8MiB", "cause", "too_large")
                            .counter()
                            .count())
                    .isOne();
        }
    }

    @Test
    void theLimitOfAPoolIsAGaugeOfAllDevicesTogether() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory);
                MemoryPool pool = MemoryPool.builder(memory)
                        .tag("scores")
                        .limitBytes(8 * MIB)
                        .open()) {
            metrics.bindTo(registry);
            assertThat(limitOf("scores").value()).isEqualTo(8.0 * MIB);
            assertThat(limitOf("scores").getId().getTag("device")).isNull();
            assertThat(limitOf("none").value()).isNaN();
            pool.limit().setByteSize(4 * MIB);
            assertThat(limitOf("scores").value()).isEqualTo(4.0 * MIB);
            pool.limit().lift();
            assertThat(limitOf("scores").value()).isNaN();
        }
    }

    private Gauge limitOf(String pool) {
        return registry.get("cistern.memory.limit").tag("pool", pool).gauge();
    }

    /// As many as are open at once.
    @Test
    void untaggedPoolsAddASeriesForEachThatIsOpen() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory);
                MemoryPool _ = MemoryPool.builder(memory).open();
                MemoryPool _ = MemoryPool.builder(memory).open()) {
            metrics.bindTo(registry);
            assertThat(registry.get("cistern.blocks.live")
                            .tag("pool", "untagged")
                            .gauges())
                    .extracting(gauge -> gauge.getId().getTag("allocator"))
                    .containsExactlyInAnyOrder("caching", "caching#2");
        }
    }

    @Test
    void prometheusScrapesThemUnderItsNames() {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(prometheus);
            long address = allocate(3 * MIB);
            assertThat(prometheus.scrape().lines())
                    .contains(
                            "# TYPE cistern_memory_requested_bytes gauge",
                            "cistern_memory_requested_bytes{allocator=\"caching\",device=\"0\",memory=\"1\",pool=\"none\"} 3145728.0",
                            "# TYPE cistern_allocations_total counter",
                            "cistern_allocations_total{allocator=\"caching\",device=\"0\",memory=\"1\",pool=\"none\"} 1.0");
            try (Allocator second = memory.open("direct")) {
                prometheus.scrape();
                free(second.allocate(5, DEVICE, stream));
                assertThat(prometheus.scrape().lines())
                        .contains(
                                "cistern_allocations_total{allocator=\"direct\",device=\"0\",memory=\"1\",pool=\"none\"} 1.0");
            }
            free(address);
        }
    }

    @Test
    void prometheusScrapesTheOthersIfAnAllocatorFailsToReport() {
        DeviceAllocator failing = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return gpu.memory().allocate(device, byteSize);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                gpu.memory().free(device, address);
            }

            @Override
            public OptionalLong reservedBytes(int device) {
                throw new IllegalStateException("lost count");
            }
        };
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory);
                Allocator own = memory.open(OpenOptions.made("own", failing))) {
            metrics.bindTo(prometheus);
            free(own.allocate(5, DEVICE, stream));
            assertThat(prometheus.scrape().lines())
                    .contains(
                            "cistern_allocations_total{allocator=\"caching\",device=\"0\",memory=\"1\",pool=\"none\"} 0.0",
                            "cistern_allocations_total{allocator=\"own\",device=\"0\",memory=\"1\",pool=\"none\"} 1.0",
                            "cistern_memory_reserved_bytes{allocator=\"own\",device=\"0\",memory=\"1\",pool=\"none\"} NaN");
        }
    }

    @Test
    void aRegistryThatRefusesAMeterKeepsNone() {
        AtomicBoolean refuses = new AtomicBoolean();
        registry.config().meterFilter(MeterFilter.deny(meter -> {
            if (refuses.get() && meter.getName().equals("cistern.blocks.live")) {
                throw new IllegalStateException("refused");
            }
            return false;
        }));
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            refuses.set(true);
            assertThatThrownBy(() -> metrics.bindTo(registry)).hasMessage("refused");
            assertThat(registry.getMeters()).isEmpty();
            refuses.set(false);
            metrics.bindTo(registry);
            int bound = registry.getMeters().size();
            refuses.set(true);
            try (Allocator second = memory.open("direct")) {
                assertThat(registry.get("cistern.allocators").gauge().value()).isNaN();
                assertThat(registry.getMeters()).hasSize(bound);
                refuses.set(false);
                assertThat(registry.get("cistern.allocators").gauge().value()).isEqualTo(2);
                assertThat(registry.get("cistern.blocks.live")
                                .tags("memory", "1", "allocator", second.name())
                                .gauge()
                                .value())
                        .isZero();
            }
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    private static double requested(MeterRegistry registry, String memory) {
        return registry.get("cistern.memory.requested")
                .tag("memory", memory)
                .gauge()
                .value();
    }

    @Test
    void twoMemoriesInARegistryHaveSeriesOfTheirOwn() {
        SimulatedGpu other = SimulatedGpu.builder().capacityBytes(64 * MIB).build();
        DeviceMemoryMetrics ofSecond;
        try (DeviceMemory second = open(other);
                DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            ofSecond = DeviceMemoryMetrics.of(second);
            metrics.bindTo(registry);
            ofSecond.bindTo(registry);
            long address = allocate(MIB);
            long ofOther = second.allocate(2 * MIB, DEVICE, 0);
            assertThat(requested(registry, "1")).isEqualTo(MIB);
            assertThat(requested(registry, "2")).isEqualTo(2.0 * MIB);
            ofSecond.close();
            assertThat(requested(registry, "1")).isEqualTo(MIB);
            assertThat(registry.find("cistern.allocators").gauges()).hasSize(1);
            ofSecond.bindTo(registry);
            assertThat(requested(registry, "2")).isEqualTo(2.0 * MIB);
            second.free(ofOther, 0);
            free(address);
        }
        assertThat(registry.getMeters()).isEmpty(); // the second memory's close removed its own
    }

    @Test
    void eventsOfPoolsEndWithThem() {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.withSlowAllocations(memory, Duration.ZERO)) {
            metrics.bindTo(registry);
            for (int i = 0; i < 100; i++) {
                try (MemoryPool pool =
                        MemoryPool.builder(memory).tag("job-" + i).open()) {
                    free(pool.allocate(MIB, DEVICE, stream));
                    assertThatThrownBy(() -> pool.allocate(300 * MIB, DEVICE, stream))
                            .isInstanceOf(DeviceOutOfMemoryException.class);
                    pool.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
                    assertThat(registry.get("cistern.trims")
                                    .tag("pool", "job-" + i)
                                    .timer()
                                    .count())
                            .isPositive();
                }
            }
            assertThat(registry.get("cistern.allocators").gauge().value()).isOne();
            assertThat(registry.getMeters())
                    .extracting(meter -> meter.getId().getTag("pool"))
                    .containsOnly(null, "none");
        }
    }

    @Test
    void closedMetersLeaveNothing() throws Exception {
        assertThat(ClosingTypes.beside(DeviceMemoryMetrics.class)).containsExactly(DeviceMemoryMetrics.class);
        Cycles.assertNothingStays(2000, () -> {
            try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
                metrics.bindTo(registry);
                metrics.bindTo(new SimpleMeterRegistry());
                memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            }
        });
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void closedPoolsLeaveNothingInARegistry() throws Exception {
        try (DeviceMemoryMetrics metrics = DeviceMemoryMetrics.of(memory)) {
            metrics.bindTo(registry);
            Cycles.assertNothingStays(3000, () -> {
                try (MemoryPool pool = MemoryPool.builder(memory).tag("job").open()) {
                    free(pool.allocate(MIB, DEVICE, stream));
                    pool.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
                }
                registry.get("cistern.allocators").gauge().value();
            });
            assertThat(registry.find("cistern.trims").timers()).isEmpty();
        }
    }
}
