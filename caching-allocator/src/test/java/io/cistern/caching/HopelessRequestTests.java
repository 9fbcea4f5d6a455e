package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.Allocator;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Requests for more than the device has: nothing is given back for them.
class HopelessRequestTests extends PoolFixture {
    private static final long CAPACITY = 256 * MIB;

    private final AtomicInteger listened = new AtomicInteger();

    HopelessRequestTests() {
        super(CAPACITY);
    }

    @BeforeEach
    void keepIdleMemory() {
        Allocator other = memory.setCurrent("caching");
        other.allocate(MIB, DEVICE, stream);
        free(other.allocate(20 * MIB, DEVICE, stream));
        memory.listeners().onMemoryPressure((_, _) -> listened.incrementAndGet());
    }

    @AfterEach
    void freeAll() {
        memory.liveBlocks().forEach(block -> free(block.address()));
    }

    private DeviceOutOfMemoryException refused(Allocator allocator, long byteSize) {
        return catchThrowableOfType(
                DeviceOutOfMemoryException.class, () -> allocator.allocate(byteSize, DEVICE, stream));
    }

    private void assertHopeless(DeviceOutOfMemoryException refused) {
        assertThat(refused.canNeverFit()).isTrue();
        assertThat(refused.isByLimit()).isFalse();
        assertThat(refused.steps()).isEmpty();
        assertThat(listened).hasValue(0);
        assertThat(memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow()).isGreaterThanOrEqualTo(20 * MIB);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "caching",
                "caching:expandable_segments=false",
                "caching:source=linear",
                "caching:source=linear,splits=false",
                "direct"
            })
    void aRequestForMoreThanTheDeviceHasIsRefusedWithoutReclaim(String spec) {
        Allocator allocator = memory.open(spec);
        DeviceOutOfMemoryException refused = refused(allocator, CAPACITY + 1);
        assertHopeless(refused);
        assertThat(refused)
                .hasMessageEndingWith("the device has " + ByteSizes.exact(CAPACITY) + " in all: request less");
        assertThat(refused.report().orElseThrow().advice())
                .containsExactly("the request is larger than the device's memory: split it");
        assertHopeless(refused(allocator, 1L << 45));
        assertHopeless(refused(allocator, 1L << 48));
        assertThat(refused(allocator, CAPACITY).canNeverFit())
                .as("all of the device")
                .isFalse();
    }

    @Test
    void aReserveCountsAsWell() {
        memory.limits().setReserve(DEVICE, 100 * MIB);
        Allocator direct = memory.open("direct");
        DeviceOutOfMemoryException refused = refused(direct, 157 * MIB);
        assertHopeless(refused);
        assertThat(refused).hasMessageContaining("a reserve of " + 100 * MIB + " bytes");
        assertThat(refused(direct, 156 * MIB).canNeverFit()).isFalse();
    }

    @Test
    void thePoolOnAnUpstreamThatCanNeverServeIsRefusedWithoutReclaim() {
        MemoryPool base = builder().open();
        assertHopeless(refused(builder().upstream(base).open(), CAPACITY + 1));
    }

    @Test
    void aRequestAboveTheMaximumThatTheSourceRefusesIsHopelessToo() {
        assertHopeless(refused(memory.open("caching:max_bytes=20MiB"), 21 * MIB));
    }

    /// The host has more memory, and may have enough later.
    @ParameterizedTest
    @ValueSource(strings = {"managed", "caching:source=managed"})
    void managedMemoryMayExceedTheDevice(String spec) {
        Allocator managed = memory.open(spec);
        free(managed.allocate(2 * CAPACITY, DEVICE, stream));
        gpu.faults().failOn(DriverCall.MEM_ALLOC_MANAGED, 0, 100, CudaResult.OUT_OF_MEMORY);
        assertThat(refused(managed, 3 * CAPACITY).canNeverFit()).isFalse();
        assertThat(listened).hasPositiveValue();
    }
}
