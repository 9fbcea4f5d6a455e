package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools of `async` on eight simulated devices.
final class ManyDevicesTests {
    private static final int DEVICES = 8;
    private static final int BAD = 3;
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(DEVICES).capacityBytes(256 * MIB).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new AsyncProvider()), List.of()))
            .open();
    private final long[] streams =
            IntStream.range(0, DEVICES).mapToLong(gpu.streams()::create).toArray();

    @AfterEach
    void memoryCloses() {
        memory.pools().all().forEach(MemoryPool::close);
        memory.close();
        assertThat(memory.allocators()).as("closed and drained").isEmpty();
    }

    private MemoryPool pool(String spec) {
        return MemoryPool.builder(memory).spec(spec).open();
    }

    private void copies(int device, long target, long source, long byteSize) {
        gpu.copies().onDevice(device, target, source, byteSize, streams[device]);
        gpu.devices().synchronize(device);
    }

    @ParameterizedTest
    @ValueSource(strings = {"async", "async:per_stream=true", "async:small_pool=1MiB"})
    void peersReachAPoolBothWaysWhatItHasAndWhatComes(String spec) {
        MemoryPool pool = pool(spec);
        long before = pool.allocate(3 * MIB, 1, streams[1]);
        pool.openBetween(1, 6);
        long second = gpu.streams().create(1);
        long after = pool.allocate(512, 1, second);
        long back = pool.allocate(3 * MIB, 6, streams[6]);
        gpu.devices().synchronize(1);
        copies(6, back, before, 3 * MIB);
        copies(6, back, after, 512);
        copies(1, before, back, 3 * MIB);
        memory.free(before, streams[1]);
        memory.free(after, second);
        memory.free(back, streams[6]);
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void accessThatTheDriverRefusesIsRefusedToAllPools() {
        MemoryPool pool = pool("async:per_stream=true");
        long one = pool.allocate(MIB, 1, streams[1]);
        long second = gpu.streams().create(1);
        long two = pool.allocate(MIB, 1, second);
        long mine = pool.allocate(MIB, 4, streams[4]);
        gpu.faults().failOn(1, DriverCall.MEM_POOL_SET_ACCESS, 1, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> pool.openTo(1, 4)).isInstanceOf(CudaException.class);
        gpu.devices().synchronize(1);
        assertThatThrownBy(() -> copies(4, mine, one, MIB)).isInstanceOf(CudaException.class);
        pool.openTo(1, 4);
        copies(4, mine, one, MIB);
        copies(4, mine, two, MIB);
        memory.free(one, streams[1]);
        memory.free(two, second);
        memory.free(mine, streams[4]);
    }

    @Test
    void aPoolOfSomebodyElseIsOpenedBySomebodyElse() {
        MemoryPool pool = pool("async:pool=default");
        assertThatThrownBy(() -> pool.openTo(0, 1))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("does not own");
    }

    @Test
    void aContextThatDiedIsSurvivedAndTheOthersGoOn() {
        memory.setCurrent("async");
        long[] blocks = IntStream.range(0, DEVICES)
                .mapToLong(device -> memory.allocate(4 * MIB, device, streams[device]))
                .toArray();
        try (MemoryKernels kernels = MemoryKernels.load(gpu, BAD)) {
            kernels.writeSequence(0x100, 1, 1, streams[BAD]);
            assertThatThrownBy(() -> gpu.devices().synchronize(BAD)).isInstanceOf(CudaException.class);
        } catch (CudaException dead) {
            assertThat(dead.result().endsContext()).isTrue();
        }
        assertThatThrownBy(() -> memory.allocate(MIB, BAD, streams[BAD]))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("ILLEGAL_ADDRESS");
        memory.streamClosing(BAD, streams[BAD]);
        for (int device = 0; device < DEVICES; device++) {
            memory.free(blocks[device], streams[device]);
            if (device != BAD) {
                memory.free(memory.allocate(40 * MIB, device, streams[device]), streams[device]);
                memory.trim(device, 0, TrimMode.SYNCHRONIZE);
                assertThat(gpu.memory().freeBytes(device)).isEqualTo(256 * MIB);
            }
        }
    }
}
