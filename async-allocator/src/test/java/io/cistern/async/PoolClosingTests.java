package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools of which one can't be closed as it should.
final class PoolClosingTests {
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private AsyncAllocator open(PoolChoice pool, boolean perStream, Map<PoolAttribute, Long> settings) {
        return AsyncFixture.async(gpu, 2, options(pool, perStream, settings), mock(StreamOrder.class));
    }

    private static AsyncOptions options(PoolChoice pool, boolean perStream, Map<PoolAttribute, Long> settings) {
        AsyncOptions usual = AsyncOptions.USUAL;
        Optional<ReleaseThreshold> threshold = pool.own() ? usual.threshold() : Optional.empty();
        return new AsyncOptions(pool, perStream, threshold, settings, usual.location(), 0, 0, false, 0, 0);
    }

    private DeviceMemory open(String spec) {
        DeviceMemory memory = DeviceMemory.builder(gpu)
                .catalog(Catalog.of(List.of(new AsyncProvider()), List.of()))
                .open();
        memory.setCurrent(spec);
        return memory;
    }

    private static void use(AsyncAllocator allocator, int device, long stream) {
        allocator.free(allocator.allocate(MIB, device, stream), MIB, device, stream);
    }

    @Test
    void theOthersAreDestroyedAllTheSame() {
        AsyncAllocator async = open(PoolChoice.OWN, true, Map.of());
        for (int device = 0; device < 2; device++) {
            use(async, device, 0);
            use(async, device, gpu.streams().create(device));
        }
        long pools = gpu.heldObjects().get("pools");
        gpu.faults().failOn(0, DriverCall.MEM_POOL_DESTROY, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatThrownBy(async::close)
                .isInstanceOf(CudaException.class)
                .satisfies(failure -> assertThat(suppressed(failure)).isOne());
        assertThat(gpu.heldObjects()).as("those of device 1 are gone").containsEntry("pools", pools - 2);
    }

    @Test
    void onePoolThatStaysKeepsNoMemory() {
        long freeBytes = gpu.memory().freeBytes(0);
        AsyncAllocator async = open(PoolChoice.OWN, false, Map.of());
        use(async, 0, 0);
        assertThat(gpu.memory().freeBytes(0)).isLessThan(freeBytes);
        gpu.faults().failOn(DriverCall.MEM_POOL_DESTROY, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatThrownBy(async::close).isInstanceOf(CudaException.class);
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
    }

    /// A block waits for another stream when its allocator is closed.
    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"CONTEXT_SYNCHRONIZE", "MEM_FREE_ASYNC", "MEM_POOL_DESTROY", "EVENT_DESTROY"})
    void oneRefusalOfTheDriverKeepsNothing(DriverCall call) {
        long own = gpu.streams().create(0);
        long other = gpu.streams().create(0);
        Map<String, Long> before = gpu.heldObjects();
        long freeBytes = gpu.memory().freeBytes(0);
        DeviceMemory memory = open("async");
        long used = memory.allocate(MIB, 0, own);
        memory.recordUse(used, other);
        gpu.keepBusy(0, other, 1_000_000);
        memory.free(used, own);
        gpu.faults().failOn(call, 0, 1, CudaResult.UNKNOWN);
        try {
            memory.close();
        } catch (CudaException told) {
            assertThat(call).isEqualTo(DriverCall.CONTEXT_SYNCHRONIZE);
        }
        assertThat(gpu.faults().failedCalls()).isOne();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
        assertThat(gpu.heldObjects()).isEqualTo(before);
    }

    @Test
    void memoryObtainedInAdvanceGoesBackThoughItsFreeIsRefusedOnce() {
        Map<String, Long> before = gpu.heldObjects();
        long freeBytes = gpu.memory().freeBytes(0);
        DeviceMemory memory = open("async:initial_size=1MiB");
        gpu.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, 1, CudaResult.UNKNOWN);
        memory.free(memory.allocate(MIB, 0, 0), 0);
        memory.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytes);
        assertThat(gpu.heldObjects()).isEqualTo(before);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void afterwardsThereIsNoPoolToAllocateFrom(boolean perStream) {
        AsyncAllocator async = open(PoolChoice.OWN, perStream, Map.of());
        use(async, 0, 0);
        async.close();
        assertThatIllegalStateException().isThrownBy(() -> async.allocate(MIB, 0, 0));
    }

    @Test
    void noCallReachesAPoolOfOthersAfterwards() {
        long handle = gpu.pools().create(MemoryPoolProperties.onDevice(0));
        DriverPool pool = DriverPool.open(gpu, 0, options(PoolChoice.handles(handle), false, Map.of()));
        pool.close();
        gpu.pools().destroy(0, handle);
        assertThat(pool.attribute(PoolAttribute.RESERVED_CURRENT)).isZero();
    }

    @Test
    void thoseOfADeviceThatCanNotBeWaitedForAreDestroyedAllTheSame() {
        AsyncAllocator async = open(PoolChoice.OWN, false, Map.of());
        use(async, 0, 0);
        use(async, 1, 0);
        gpu.faults().failOn(DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(async::close).isInstanceOf(CudaException.class);
        assertThat(gpu.calls().of(DriverCall.MEM_POOL_DESTROY)).isEqualTo(2);
    }

    @Test
    void theStreamOfASourceIsDestroyedAllTheSame() {
        DriverPoolSource source =
                new DriverPoolSource(gpu, AsyncFixture.async(gpu, 2, AsyncOptions.USUAL, mock(StreamOrder.class)), 2);
        source.release(source.acquire(MIB, 256, 0));
        gpu.faults().failOn(DriverCall.MEM_POOL_DESTROY, 0, Integer.MAX_VALUE, CudaResult.UNKNOWN);
        assertThatThrownBy(source::close).isInstanceOf(CudaException.class);
        assertThat(gpu.calls().of(DriverCall.STREAM_DESTROY)).isOne();
    }

    private static long suppressed(Throwable failure) {
        long below = 0;
        for (Throwable each : failure.getSuppressed()) {
            below += 1 + suppressed(each);
        }
        return below;
    }

    @Test
    void theOtherSettingsOfAChosenPoolAreSetBackAllTheSame() {
        long pool = gpu.pools().create(MemoryPoolProperties.onDevice(0));
        Map<PoolAttribute, Long> settings = Map.of(
                PoolAttribute.REUSE_ALLOW_OPPORTUNISTIC, 0L,
                PoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES, 0L,
                PoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0L);
        AsyncAllocator async = open(PoolChoice.handles(pool), false, settings);
        use(async, 0, 0);
        gpu.faults().failOn(DriverCall.MEM_POOL_SET_ATTRIBUTE, 1, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(async::close).isInstanceOf(CudaException.class);
        assertThat(settings.keySet())
                .filteredOn(each -> gpu.pools().attribute(0, pool, each) == 1)
                .hasSize(2);
    }

    @Test
    void aCaptureThatBeginsMeanwhileLeavesTheCloseForLater() {
        try (DeviceMemory memory = open("async")) {
            Map<String, Long> before = gpu.heldObjects();
            Allocator closing = memory.open("async");
            long stream = gpu.streams().create(0);
            long block = closing.allocate(MIB, 0, stream);
            memory.recordUse(block, 0);
            gpu.keepBusy(0, 0, 1_000_000);
            memory.free(block, stream);
            gpu.faults()
                    .failOn(
                            DriverCall.CONTEXT_SYNCHRONIZE,
                            0,
                            Integer.MAX_VALUE,
                            CudaResult.STREAM_CAPTURE_UNSUPPORTED);
            closing.close();
            assertThat(memory.allocators()).hasSize(2);
            gpu.faults().clear();
            memory.trim(0, 0, TrimMode.WITHOUT_WAITING);
            assertThat(memory.allocators()).hasSize(1);
            gpu.streams().destroy(0, stream);
            assertThat(gpu.heldObjects()).isEqualTo(before);
        }
    }
}
