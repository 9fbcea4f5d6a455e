package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import java.util.EnumMap;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools that are not the allocator's own.
class ChosenPoolTests extends AsyncFixture {
    private final long defaultPool = gpu.pools().defaultPool(DEVICE);
    private final long foreign = gpu.pools().create(MemoryPoolProperties.onDevice(DEVICE));

    private long poolOf(long address) {
        return gpu.memory().attribute(DEVICE, PointerAttribute.MEMPOOL_HANDLE, address);
    }

    private Map<PoolAttribute, Long> settings(long pool) {
        Map<PoolAttribute, Long> settings = new EnumMap<>(PoolAttribute.class);
        for (PoolAttribute attribute : PoolAttribute.values()) {
            if (attribute.isInt() || attribute == PoolAttribute.RELEASE_THRESHOLD) {
                settings.put(attribute, attribute(pool, attribute));
            }
        }
        return settings;
    }

    @Test
    void memoryComesFromThePoolThatWasChosen() {
        gpu.pools().setCurrentPool(DEVICE, foreign);
        assertThat(poolUsedBy("async:pool=default")).isEqualTo(defaultPool);
        assertThat(poolUsedBy("async:pool=current")).isEqualTo(foreign);
        assertThat(poolUsedBy("async:pool=0x" + Long.toHexString(foreign))).isEqualTo(foreign);
        assertThat(poolUsedBy("async")).isNotIn(defaultPool, foreign);
    }

    private long poolUsedBy(String spec) {
        try (Allocator async = memory.open(spec)) {
            long address = async.allocate(MIB, DEVICE, stream);
            long pool = poolOf(address);
            memory.free(address, stream);
            return pool;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"default", "current", "handle"})
    void itsSettingsAreNeverTouchedUnasked(String choice) {
        long pool = choice.equals("handle") ? foreign : defaultPool;
        gpu.pools().setAttribute(DEVICE, pool, PoolAttribute.RELEASE_THRESHOLD, 7);
        Map<PoolAttribute, Long> before = settings(pool);
        String spec = "async:pool=" + (choice.equals("handle") ? "0x" + Long.toHexString(pool) : choice);
        try (Allocator async = memory.open(spec)) {
            long address = async.allocate(MIB, DEVICE, stream);
            assertThat(settings(pool)).isEqualTo(before);
            async.resetPeaks(DEVICE);
            memory.free(address, stream);
            async.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        }
        assertThat(settings(pool)).isEqualTo(before);
        assertThat(attribute(pool, PoolAttribute.USED_HIGH)).isEqualTo(MIB);
        assertThat(gpu.pools().currentPool(DEVICE)).isEqualTo(defaultPool);
    }

    @Test
    void whatOptionsNameIsSetAndSetBack() {
        gpu.pools().setAttribute(DEVICE, foreign, PoolAttribute.RELEASE_THRESHOLD, 5);
        Map<PoolAttribute, Long> before = settings(foreign);
        Allocator async = memory.open(
                "async:release_threshold=1GiB,reuse_allow_opportunistic=false,pool=0x" + Long.toHexString(foreign));
        long address = async.allocate(MIB, DEVICE, stream);
        assertThat(attribute(foreign, PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(1024 * MIB);
        assertThat(attribute(foreign, PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC)).isZero();
        assertThat(attribute(foreign, PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES))
                .isEqualTo(1);
        memory.free(address, stream);
        async.close();
        assertThat(settings(foreign)).isEqualTo(before);
    }

    @Test
    void whatSomebodyElseSetMeanwhileStays() {
        Allocator async = memory.open("async:pool=default,release_threshold=1GiB");
        memory.free(async.allocate(MIB, DEVICE, stream), stream);
        gpu.pools().setAttribute(DEVICE, defaultPool, PoolAttribute.RELEASE_THRESHOLD, 42);
        async.close();
        assertThat(attribute(defaultPool, PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(42);
    }

    @Test
    void primingSetsTheThresholdBackAtOnce() {
        Allocator async = memory.open("async:pool=default,initial_size=64MiB");
        memory.free(async.allocate(MIB, DEVICE, stream), stream);
        assertThat(attribute(defaultPool, PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(Long.MAX_VALUE);
        assertThat(attribute(defaultPool, PoolAttribute.RESERVED_HIGH)).isEqualTo(64 * MIB);
    }

    /// Whatever its threshold, and for all streams.
    @Test
    void primingFillsAPoolThatKeepsNothing() {
        gpu.pools().setAttribute(DEVICE, foreign, PoolAttribute.RELEASE_THRESHOLD, 0);
        Allocator async = memory.open("async:initial_size=64MiB,reuse_allow_opportunistic=false,"
                + "reuse_follow_event_dependencies=false,reuse_allow_internal_dependencies=false,pool=0x"
                + Long.toHexString(foreign));
        long first = async.allocate(MIB, DEVICE, stream);
        assertThat(attribute(foreign, PoolAttribute.RESERVED_CURRENT)).isEqualTo(64 * MIB);
        assertThat(attribute(foreign, PoolAttribute.RELEASE_THRESHOLD)).isZero();
        memory.free(async.allocate(32 * MIB, DEVICE, other), other);
        assertThat(attribute(foreign, PoolAttribute.RESERVED_HIGH)).isEqualTo(64 * MIB);
        memory.free(first, stream);
    }

    /// As RMM, CuPy and cuda.core do.
    @Test
    void theDefaultPoolKeepsItsMemoryWhileItIsUsed() {
        Allocator async = memory.open("async:pool=default");
        memory.free(async.allocate(MIB, DEVICE, stream), stream);
        gpu.streams().synchronize(DEVICE, stream);
        assertThat(attribute(defaultPool, PoolAttribute.RESERVED_CURRENT)).isPositive();
        async.close();
        assertThat(attribute(defaultPool, PoolAttribute.RELEASE_THRESHOLD)).isZero();
    }

    @Test
    void aThresholdThatSomebodySetOrASpecNamesStays() {
        gpu.pools().setAttribute(DEVICE, defaultPool, PoolAttribute.RELEASE_THRESHOLD, 5 * MIB);
        Allocator first = memory.open("async:pool=default");
        memory.free(first.allocate(MIB, DEVICE, stream), stream);
        assertThat(attribute(defaultPool, PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(5 * MIB);
        first.close();
        gpu.pools().setAttribute(DEVICE, defaultPool, PoolAttribute.RELEASE_THRESHOLD, 0);
        Allocator second = memory.open("async:pool=default,release_threshold=zero");
        memory.free(second.allocate(MIB, DEVICE, stream), stream);
        assertThat(attribute(defaultPool, PoolAttribute.RELEASE_THRESHOLD)).isZero();
    }

    @Test
    void itOutlivesTheAllocator() {
        poolUsedBy("async:pool=0x" + Long.toHexString(foreign));
        long address = gpu.pools().allocateFrom(DEVICE, foreign, MIB, stream);
        gpu.pools().free(DEVICE, address, stream);
        gpu.pools().destroy(DEVICE, foreign);
    }

    @Test
    void aDeviceWithoutAHandleIsNotServed() {
        Allocator async = memory.open("async:pool=0x" + Long.toHexString(foreign));
        long onOther = gpu.streams().create(1);
        assertThatThrownBy(() -> async.allocate(MIB, 1, onOther))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("device 1");
    }

    @Test
    void itsHighWaterMarkIsNotTakenForOurs() {
        assertThat(reservedPeak("async:pool=default")).isEmpty();
        assertThat(reservedPeak("async:per_stream=true")).isEmpty();
        assertThat(reservedPeak("async")).isPresent();
    }

    private OptionalLong reservedPeak(String spec) {
        return memory.open(spec).extension(MemoryStatistics.class).orElseThrow().reservedPeakBytes(0);
    }
}
