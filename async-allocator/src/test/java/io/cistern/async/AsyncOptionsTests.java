package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.AdditionalAnswers.delegatesTo;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Support;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceEnvironment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AsyncOptionsTests extends AsyncFixture {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "async",
                "async:pool=own",
                "async:pool=default",
                "async:pool=current",
                "async:pool=0x00000000007f00a0",
                "async:pool=[0x7f00a0,0xB0]",
                "async:per_stream=true",
                "async:release_threshold=keep_all",
                "async:release_threshold=zero",
                "async:release_threshold=2GiB",
                "async:reuse_follow_event_dependencies=false,reuse_allow_opportunistic=false",
                "async:reuse_allow_internal_dependencies=true,pool=default",
                "async:max_size=1GiB,initial_size=1GiB",
                "async:handle_types=posix_fd",
                "async:handle_types=[posix_fd,fabric]",
                "async:handle_types=none",
                "async:location=device",
                "async:location=managed",
                "async:location=host",
                "async:location=host_numa",
                "async:location=host_numa:0",
                "async:small_pool=1MiB"
            })
    void isLegal(String spec) {
        memory.open(spec).close();
    }

    @Test
    void theLargestMaxSizeServesAsNone() {
        Allocator async = memory.open("async:max_size=" + Long.MAX_VALUE);
        memory.free(async.allocate(MIB, DEVICE, stream), stream);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            pool=mine                           | pool                | 0x
            pool=0x                             | pool                | default
            pool=0x0                            | pool                | current
            pool=0x12345678123456781            | pool                | own
            pool=[default,0x1]                  | pool                | own
            per_stream=yes                      | per_stream          | true
            release_threshold=some              | release_threshold   | zero, adaptive, keep_all
            reuse_allow_opportunistic=2         | reuse_allow_opportunistic | true
            max_size=0                          | max_size            | at least 1
            max_size=1GB                        | max_size            | 1024
            handle_types=fd                     | handle_types        | posix_fd
            handle_types=[none,fabric]          | handle_types        | fabric
            location=disk                       | location            | host_numa
            location=host_numa:x                | location            | host_numa:N
            initial_size=0                      | initial_size        | at least 1
            small_pool=0                        | small_pool          | at least 1
            threshold=zero                      | threshold           | release_threshold
            """)
    void whatIsNotLegalIsNamedWithWhatIs(String option, String key, String legal) {
        assertRefused("async:" + option, key, legal);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            pool=default,per_stream=true                        | per_stream          | pool=own
            pool=current,max_size=1GiB                          | max_size            | pool=own
            pool=0x7f00,handle_types=posix_fd                   | handle_types        | pool=own
            pool=default,location=host                          | location            | pool=own
            pool=default,hardware_decompress=true               | hardware_decompress | pool=own
            pool=default,small_pool=1MiB                        | small_pool          | pool=own
            initial_size=2GiB,max_size=1GiB                     | initial_size        | at most max_size
            initial_size=2GiB,release_threshold=1GiB            | initial_size        | at most the threshold
            initial_size=1,release_threshold=zero               | initial_size        | at most the threshold
            hardware_decompress=true,location=host              | hardware_decompress | location=host
            handle_types=posix_fd,location=managed              | handle_types        | location=managed
            hardware_decompress=true,location=managed           | hardware_decompress | location=managed
            small_pool=1MiB,per_stream=true                     | small_pool          | per_stream
            """)
    void aContradictionNamesBothSides(String options, String one, String other) {
        assertRefused("async:" + options, "contradicts", one, other);
    }

    @Test
    void whatTheDeviceCannotDoIsRefusedWithTheReason() {
        assertRefused("async:hardware_decompress=true", "device 0", "decompression engine");
    }

    @ParameterizedTest
    @CsvSource({"managed, MANAGED_MEMORY_POOLS", "host, HOST_MEMORY_POOLS", "host_numa, HOST_NUMA_MEMORY_POOLS"})
    void aLocationThatADeviceLacksIsRefused(String location, DriverFeature lacking) {
        CudaDriver driver = mock(CudaDriver.class, delegatesTo(gpu));
        DeviceCapabilities all = gpu.capabilities().devices().getFirst();
        Map<DriverFeature, Support> features = new EnumMap<>(all.features());
        features.put(lacking, Support.no("in a test"));
        DeviceCapabilities fewer = new DeviceCapabilities(
                0, all.name(), all.uuid(), all.totalBytes(), all.computeCapability(), all.granularity(), features);
        doReturn(new DriverCapabilities(13000, List.of(), List.of(fewer)))
                .when(driver)
                .capabilities();
        AsyncOptions options = options(PoolLocation.parse(location).orElseThrow(), 0, 0);
        assertThatThrownBy(() -> options.requireSupport(driver))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContainingAll("location=" + location, "device 0", "in a test");
    }

    private static AsyncOptions options(PoolLocation location, int handleTypes, long initialBytes) {
        return new AsyncOptions(
                PoolChoice.OWN, false, Optional.empty(), Map.of(), location, handleTypes, 0, false, 0, initialBytes);
    }

    @Test
    void hostMemoryIsOfTheNodeNearestToTheDevice() {
        CudaDriver driver = mock(CudaDriver.class);
        Devices devices = mock(Devices.class);
        when(driver.devices()).thenReturn(devices);
        when(devices.attribute(1, DeviceAttribute.HOST_NUMA_ID)).thenReturn(3, -1);
        assertThat(PoolLocation.HOST_NUMA.of(driver, 1)).isEqualTo(MemoryLocation.hostNuma(3));
        assertThat(PoolLocation.HOST_NUMA.of(driver, 1))
                .as("the host has one node")
                .isEqualTo(MemoryLocation.hostNuma(0));
    }

    @Test
    void eachDeviceNeedsPools() {
        DeviceEnvironment environment = mock(DeviceEnvironment.class);
        when(environment.onAll(any())).thenCallRealMethod();
        when(environment.deviceCount()).thenReturn(2);
        when(environment.memoryPools(0)).thenReturn(Availability.yes());
        when(environment.memoryPools(1)).thenReturn(Availability.no("in a test"));
        assertThat(new AsyncProvider().availability(environment)).isEqualTo(Availability.no("in a test"));
        when(environment.memoryPools(1)).thenReturn(Availability.yes());
        assertThat(new AsyncProvider().availability(environment).available()).isTrue();
    }

    @Test
    void aSourceHasTheOptionsOfAPoolForAllStreams() {
        List<AsyncOption<?>> all = new ArrayList<>(new AsyncProvider().options());
        assertThat(all.remove(AsyncOption.PER_STREAM)).isTrue();
        assertThat(new DriverPoolSourceProvider().options()).hasSameElementsAs(all);
    }

    @Test
    void handlesThatADeviceLacksAreRefused() {
        assertThatThrownBy(() -> options(PoolLocation.DEVICE, 4, 0).requireSupport(gpu))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("handle_types");
    }

    @Test
    void aDevicesPoolIsPrimedWithNoMoreThanTheDeviceHas() {
        long all = gpu.devices().totalBytes(DEVICE);
        options(PoolLocation.DEVICE, 0, all).requireSupport(gpu);
        options(PoolLocation.HOST, 0, all + 1).requireSupport(gpu);
        assertThatThrownBy(() -> options(PoolLocation.DEVICE, 0, all + 1).requireSupport(gpu))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("at most the device's memory");
    }

    @Test
    void aRangeIsForAllStreams() {
        assertRefused("caching:source=\"driver_pool:per_stream=true\"", "driver_pool", "per_stream=false");
    }

    private void assertRefused(String spec, String... parts) {
        assertThatThrownBy(() -> memory.open(spec))
                .as(spec)
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContainingAll(parts);
    }

    @Test
    void codeWritesTheSameSpecAsText() {
        assertThat(new AsyncSpec().spec().text()).isEqualTo("async");
        assertThat(new AsyncSpec()
                        .with(AsyncOption.POOL, PoolChoice.handles(0xA0, 0xB0))
                        .with(AsyncOption.RELEASE_THRESHOLD, new ReleaseThreshold.Bytes(64 * MIB))
                        .spec()
                        .text())
                .isEqualTo("async:pool=[0xa0,0xb0],release_threshold=67108864");
        assertThat(new AsyncSpec()
                        .with(AsyncOption.RELEASE_THRESHOLD, new ReleaseThreshold.Fraction(0.25))
                        .with(AsyncOption.MAX_SIZE, 1L << 30)
                        .with(AsyncOption.SMALL_POOL, MIB)
                        .with(AsyncOption.INITIAL_SIZE, 2 * MIB)
                        .spec()
                        .text())
                .isEqualTo("async:release_threshold=0.250000,max_size=1073741824,small_pool=1048576"
                        + ",initial_size=2097152");
        assertThat(new AsyncSpec()
                        .with(AsyncOption.LOCATION, PoolLocation.hostNuma(1))
                        .with(AsyncOption.HANDLE_TYPES, List.of(HandleType.POSIX_FILE_DESCRIPTOR, HandleType.FABRIC))
                        .sourceSpec()
                        .text())
                .isEqualTo("driver_pool:location=host_numa:1,handle_types=[posix_fd,fabric]");
    }

    @Test
    void everyOptionOfAnOwnPoolReachesTheDriver() {
        Allocator async = memory.open("async:release_threshold=64MiB,reuse_follow_event_dependencies=false,"
                + "reuse_allow_opportunistic=false,reuse_allow_internal_dependencies=false,max_size=100MiB");
        long address = async.allocate(MIB, DEVICE, stream);
        long pool = poolOf(address);
        assertThat(attribute(pool, PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(64 * MIB);
        assertThat(attribute(pool, PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES))
                .isZero();
        assertThat(attribute(pool, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC)).isZero();
        assertThat(attribute(pool, PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES))
                .isZero();
        assertThatThrownBy(() -> async.allocate(128 * MIB, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        memory.free(address, stream);
    }

    @Test
    void aRequestAboveTheMaximumOfAPoolIsHopeless() {
        AtomicInteger asked = new AtomicInteger();
        memory.listeners().onMemoryPressure((_, _) -> asked.incrementAndGet());
        Allocator async = memory.open("async:max_size=96MiB");
        assertThatThrownBy(() -> async.allocate(97 * MIB, DEVICE, stream))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        refused -> assertThat(refused.canNeverFit()).isTrue())
                .hasMessageContaining("max_size");
        assertThat(asked).hasValue(0);
        long address = async.allocate(64 * MIB, DEVICE, stream);
        assertThatThrownBy(() -> async.allocate(64 * MIB, DEVICE, stream))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        refused -> assertThat(refused.canNeverFit()).isFalse());
        memory.free(address, stream);
    }

    @Test
    void managedMemoryMayExceedTheDevice() {
        Allocator managed = memory.open("async:location=managed");
        memory.free(managed.allocate(9000 * MIB, DEVICE, stream), stream);
        gpu.faults().failOn(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, 0, 100, CudaResult.OUT_OF_MEMORY);
        assertThatThrownBy(() -> managed.allocate(20_000 * MIB, DEVICE, stream))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        refused -> assertThat(refused.canNeverFit()).isFalse());
    }

    private long poolOf(long address) {
        return gpu.memory().attribute(DEVICE, io.cistern.cuda.PointerAttribute.MEMPOOL_HANDLE, address);
    }

    @Test
    void withoutOptionsAnOwnPoolHasTheDriversPolicies() {
        Allocator async = memory.open("async");
        long address = async.allocate(MIB, DEVICE, stream);
        for (PoolAttribute attribute : PoolAttribute.values()) {
            if (attribute.isInt()) {
                assertThat(attribute(poolOf(address), attribute))
                        .as("%s", attribute)
                        .isEqualTo(1);
            }
        }
        memory.free(address, stream);
    }

    @Test
    void primingObtainsMemoryThatStays() {
        Allocator async = memory.open("async:initial_size=1GiB,release_threshold=1GiB");
        assertThat(async.reservedBytes(DEVICE)).hasValue(0);
        long address = async.allocate(MIB, DEVICE, stream);
        assertThat(async.reservedBytes(DEVICE)).hasValue(1024 * MIB);
        assertThat(figure(async, "pool.release_threshold_bytes")).isEqualTo(1024 * MIB);
        long second = async.allocate(900 * MIB, DEVICE, other);
        gpu.streams().synchronize(DEVICE, other);
        assertThat(async.reservedBytes(DEVICE)).hasValue(1024 * MIB);
        memory.free(address, stream);
        memory.free(second, other);
    }

    @Test
    void onlyThePoolOfLargeBlocksIsPrimed() {
        Allocator async = memory.open("async:small_pool=1MiB,initial_size=256MiB");
        memory.free(async.allocate(MIB, DEVICE, stream), stream);
        assertThat(async.reservedBytes(DEVICE).orElseThrow()).isLessThan(256 * MIB);
        memory.free(async.allocate(MIB + 1, DEVICE, stream), stream);
        assertThat(async.reservedBytes(DEVICE).orElseThrow()).isGreaterThan(256 * MIB);
    }

    @ParameterizedTest
    @CsvSource({"OUT_OF_MEMORY, initial_size=1073741824", "UNKNOWN, CUDA_ERROR_UNKNOWN"})
    void aPoolThatCannotBePrimedIsDestroyed(CudaResult refusal, String says) {
        Map<String, Long> before = gpu.heldObjects();
        Allocator async = memory.open("async:initial_size=1GiB");
        gpu.faults().failOn(DriverCall.MEM_ALLOC_FROM_POOL_ASYNC, 0, Integer.MAX_VALUE, refusal);
        assertThatThrownBy(() -> async.allocate(MIB, DEVICE, stream)).hasMessageContaining(says);
        gpu.faults().clear();
        assertThat(gpu.heldObjects()).isEqualTo(before);
    }

    @Test
    void managedMemoryIsMoreThanTheDeviceHasAndTheDevicesReachIt() {
        long total = gpu.devices().totalBytes(DEVICE);
        try (MemoryPool pool = memory.pools().open("async:location=managed")) {
            long address = pool.allocate(total + 64 * MIB, DEVICE, stream);
            gpu.copies().fillBytes(DEVICE, address + total, (byte) 1, 64 * MIB, stream);
            gpu.streams().synchronize(DEVICE, stream);
            assertThat(gpu.memory().attribute(DEVICE, PointerAttribute.IS_MANAGED, address))
                    .isOne();
            memory.free(address, stream);
        }
    }

    @Test
    void hostMemoryTakesNothingOfTheDeviceAndIsReachedByIt() {
        for (String location : List.of("host", "host_numa", "host_numa:0")) {
            try (Allocator async = memory.open("async:location=" + location)) {
                long before = gpu.memory().freeBytes(DEVICE);
                long address = async.allocate(64 * MIB, DEVICE, stream);
                gpu.copies().fillBytes(DEVICE, address, (byte) 1, 64 * MIB, stream);
                assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(before);
                memory.free(address, stream);
            }
        }
    }
}
