package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The driver's pools under other allocators, and as pools of a program.
class DriverPoolSourceTests extends AsyncFixture {
    private long poolOf(long address) {
        return gpu.memory().attribute(DEVICE, PointerAttribute.MEMPOOL_HANDLE, address);
    }

    @Test
    void cachingCutsRangesOfThePoolForAllStreams() {
        Allocator caching = memory.open("caching:source=\"driver_pool:pool=default\"");
        List<Long> blocks = new ArrayList<>();
        for (long each : new long[] {stream, other}) {
            long address = caching.allocate(MIB, DEVICE, each);
            gpu.copies().fillBytes(DEVICE, address, (byte) 1, MIB, each);
            assertThat(poolOf(address)).isEqualTo(gpu.pools().defaultPool(DEVICE));
            blocks.add(address);
        }
        assertThat(attribute(gpu.pools().defaultPool(DEVICE), PoolAttribute.RELEASE_THRESHOLD))
                .isZero();
        memory.free(blocks.get(0), stream);
        memory.free(blocks.get(1), other);
        assertThat(caching.reservedBytes(DEVICE).orElseThrow()).isPositive();
        caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(attribute(gpu.pools().defaultPool(DEVICE), PoolAttribute.RESERVED_CURRENT))
                .isZero();
    }

    @Test
    void theProgramsWorkDoesNotHoldUpASource() {
        latch.hold(gpu.streams().create(DEVICE, false, 0)); // the legacy default stream would wait for it
        DriverPoolSource source =
                new DriverPoolSource(gpu, AsyncFixture.async(gpu, 2, AsyncOptions.USUAL, mock(StreamOrder.class)), 2);
        source.release(source.acquire(MIB, 256, DEVICE));
        source.release(source.acquire(MIB, 256, DEVICE));
        latch.release();
        source.close();
    }

    @Test
    void cachingStaysBelowTheMaximumOfThePool() {
        Allocator caching = memory.open("caching:source=\"driver_pool:max_size=64MiB\"");
        long address = caching.allocate(40 * MIB, DEVICE, stream);
        assertThatThrownBy(() -> caching.allocate(40 * MIB, DEVICE, stream))
                .isInstanceOf(DeviceOutOfMemoryException.class);
        memory.free(address, stream);
        memory.free(caching.allocate(60 * MIB, DEVICE, stream), stream);
    }

    @Test
    void aRangeWhoseStreamCannotBeWaitedForGoesBack() {
        Allocator caching = memory.open("caching:source=\"driver_pool:pool=default\"");
        gpu.faults().failOn(DriverCall.STREAM_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> caching.allocate(40 * MIB, DEVICE, stream)).isInstanceOf(CudaException.class);
        assertThat(attribute(gpu.pools().defaultPool(DEVICE), PoolAttribute.USED_CURRENT))
                .isZero();
    }

    @Test
    void aPoolOfTheProgramIsAPoolOfTheDriver() {
        try (MemoryPool pool = MemoryPool.builder(memory)
                .spec("async:release_threshold=keep_all")
                .limitBytes(100 * MIB)
                .initialBytes(96 * MIB, DEVICE, stream)
                .open()) {
            assertThat(pool.reservedBytes(DEVICE)).hasValue(96 * MIB);
            try (Scope _ = pool.enter()) {
                long inside = memory.allocate(50 * MIB, DEVICE, stream);
                assertThat(pool.statistics(DEVICE).requestedBytes()).isEqualTo(50 * MIB);
                assertThatThrownBy(() -> memory.allocate(51 * MIB, DEVICE, stream))
                        .isInstanceOf(DeviceOutOfMemoryException.class);
                memory.free(inside, stream);
            }
            assertThat(pool.trim(DEVICE, 0, TrimMode.SYNCHRONIZE).returnedBytes())
                    .isEqualTo(96 * MIB);
        }
    }

    @Test
    void aPoolOfTheDriverLendsNothing() {
        assertThatThrownBy(() -> MemoryPool.builder(memory)
                        .spec("async")
                        .lendsToOthers(true)
                        .open())
                .isInstanceOf(ConfigurationException.class);
    }

    @Test
    void aBlockOutlivesItsPool() {
        MemoryPool pool = MemoryPool.builder(memory).spec("async").open();
        long address = pool.allocate(64 * MIB, DEVICE, stream);
        pool.close();
        assertThat(pool.isDrained()).isFalse();
        gpu.copies().fillBytes(DEVICE, address, (byte) 1, 64 * MIB, stream);
        memory.free(address, stream);
        assertThat(pool.isDrained()).isTrue();
        assertThat(gpu.memory().freeBytes(DEVICE)).isEqualTo(gpu.devices().totalBytes(DEVICE));
    }

    /// The driver grows by 32 MiB, and counts what it hands out in its own units.
    @Test
    void aLimitIsExactThoughTheDriverGrowsInPages() {
        Allocator async = memory.open("async");
        try (Scope _ = async.enter(ScopeOptions.all().limit(MemoryLimit.of("exact", 33 * MIB)))) {
            List<Long> blocks = new ArrayList<>();
            for (int i = 0; i < 33; i++) {
                blocks.add(memory.allocate(MIB, DEVICE, stream));
            }
            assertThat(async.reservedBytes(DEVICE)).hasValue(64 * MIB);
            assertThatThrownBy(() -> memory.allocate(1, DEVICE, stream)).isInstanceOf(DeviceOutOfMemoryException.class);
            memory.free(blocks.removeLast(), stream);
            memory.free(memory.allocate(MIB, DEVICE, stream), stream);
            blocks.forEach(address -> memory.free(address, stream));
        }
    }
}
