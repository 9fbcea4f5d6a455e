package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.Misuse;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.ServiceLoader;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// One process and eight simulated devices: what goes wrong on one leaves the others alone.
final class ManyDevicesTests {
    private static final int DEVICES = 8;
    private static final int BAD = 3;
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 256 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(DEVICES).capacityBytes(CAPACITY).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(found()).open();
    private final long[] streams =
            IntStream.range(0, DEVICES).mapToLong(gpu.streams()::create).toArray();

    private static Catalog found() {
        return Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class));
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    @AfterEach
    void memoryCloses() {
        memory.pools().all().forEach(MemoryPool::close);
        memory.close();
        assertThat(memory.allocators()).as("closed and drained").isEmpty();
    }

    private void assertAllIsBack(int device) {
        assertThat(gpu.memory().freeBytes(device)).as("device %d", device).isEqualTo(CAPACITY);
    }

    @ParameterizedTest(name = "{0} fails with {1}")
    @CsvSource({
        "MEM_CREATE, OUT_OF_MEMORY",
        "MEM_CREATE, UNKNOWN",
        "MEM_MAP, UNKNOWN",
        "MEM_SET_ACCESS, UNKNOWN",
        "MEM_UNMAP, UNKNOWN",
        "MEM_RELEASE, UNKNOWN",
        "EVENT_RECORD, UNKNOWN"
    })
    void aDriverThatRefusesOnOneDeviceLeavesTheOthersAlone(DriverCall call, CudaResult result) throws Exception {
        Allocator allocator = memory.setCurrent("caching");
        gpu.faults().failOn(BAD, call, 3, 1_000_000, result);
        List<Future<Integer>> failures = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(DEVICES)) {
            for (int device = 0; device < DEVICES; device++) {
                int own = device;
                failures.add(executor.submit(() -> work(own, new SplittableRandom(own))));
            }
            for (int device = 0; device < DEVICES; device++) {
                int failed = failures.get(device).get(60, TimeUnit.SECONDS);
                if (device != BAD) {
                    assertThat(failed).as("failures on device %d", device).isZero();
                }
            }
        }
        gpu.faults().clear();
        work(BAD, new SplittableRandom(99));
        assertThat(work(BAD, new SplittableRandom(100))).isZero();
        allocator.extension(CachingAllocator.class).orElseThrow().checkInvariants();
        for (int device = 0; device < DEVICES; device++) {
            allocator.trim(device, 0, TrimMode.SYNCHRONIZE);
            assertThat(allocator.reservedBytes(device)).hasValue(0);
            assertAllIsBack(device);
        }
    }

    @Test
    void allDevicesAreEmptyThoughACaptureInterruptsTheCloseOfOne() {
        Allocator allocator = memory.open("caching");
        for (int device = 0; device < DEVICES; device++) {
            memory.free(allocator.allocate(8 * MIB, device, streams[device]), streams[device]);
        }
        gpu.faults().failOn(BAD, DriverCall.CONTEXT_SYNCHRONIZE, 0, 1, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
        allocator.close();
        memory.trim(BAD, 0, TrimMode.SYNCHRONIZE); // what was interrupted is done again
        IntStream.range(0, DEVICES).forEach(this::assertAllIsBack);
        assertThat(allocator.isDrained()).isTrue();
    }

    /// Allocates, frees and trims on one device, on two streams.
    ///
    /// @return how often that failed
    private int work(int device, SplittableRandom random) {
        int failed = 0;
        long second = gpu.streams().create(device);
        List<Long> live = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            long stream = random.nextBoolean() ? second : streams[device];
            try {
                live.add(memory.allocate(1 + random.nextInt(i % 4 == 0 ? 1 << 23 : 1 << 12), device, stream));
            } catch (DeviceOutOfMemoryException | CudaException refused) {
                failed++;
            }
            while (live.size() > 10) {
                memory.free(live.remove(random.nextInt(live.size())), stream);
            }
            if (i % 50 == 0) {
                memory.trim(device, 0, TrimMode.WITHOUT_WAITING);
            }
        }
        live.forEach(block -> memory.free(block, second));
        memory.streamClosing(device, second);
        gpu.streams().destroy(device, second);
        return failed;
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear", "caching:reuse=never", "direct"})
    void aContextThatDiedIsSurvivedAndTheOthersGoOn(String spec) {
        memory.setCurrent(spec);
        long[] blocks = IntStream.range(0, DEVICES)
                .mapToLong(device -> memory.allocate(4 * MIB, device, streams[device]))
                .toArray();
        long elsewhere = memory.allocate(MIB, BAD, streams[BAD]);
        long large = memory.allocate(40 * MIB, BAD, streams[BAD]);
        long second = gpu.streams().create(BAD);
        memory.recordUse(elsewhere, second);
        kill(BAD);

        DeviceBuffer used = DeviceBuffer.allocate(memory, MIB, 0, streams[0]);
        assertThatThrownBy(() -> gpu.copies().fillBytes(BAD, large, (byte) 1, MIB, streams[BAD]))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("ILLEGAL_ADDRESS");
        used.fill((byte) 1);
        used.close();
        memory.free(elsewhere, streams[BAD]);
        memory.free(large, second);
        memory.streamClosing(BAD, second);
        for (int device = 0; device < DEVICES; device++) {
            memory.free(blocks[device], streams[device]);
            if (device != BAD) {
                memory.free(memory.allocate(100 * MIB, device, streams[device]), streams[device]);
            }
        }
        assertThat(memory.current(BAD).statistics(BAD).liveBlocks()).isZero();
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        for (int device = 0; device < DEVICES; device++) {
            if (device != BAD) {
                assertAllIsBack(device);
            }
        }
    }

    /// Has a kernel write where nothing is.
    private void kill(int device) {
        try (MemoryKernels kernels = MemoryKernels.load(gpu, device)) {
            kernels.writeSequence(0x100, 1, 1, streams[device]);
            assertThatThrownBy(() -> gpu.devices().synchronize(device)).isInstanceOf(CudaException.class);
        } catch (CudaException dead) {
            assertThat(dead.result().endsContext()).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"caching", "caching:source=linear", "caching:splits=false", "direct"})
    void aDriverThatIsGoneIsSurvived(String spec) {
        MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
        long[] blocks = IntStream.range(0, DEVICES)
                .mapToLong(device -> pool.allocate(4 * MIB, device, streams[device]))
                .toArray();
        long second = gpu.streams().create(BAD);
        gpu.close();
        for (int device = 0; device < DEVICES; device++) {
            memory.free(blocks[device], device == BAD ? second : streams[device]);
        }
        assertThat(pool.liveBlockCount()).isZero();
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        memory.close();
        assertThatThrownBy(() -> gpu.memory().freeBytes(0)).hasMessageContaining("DEINITIALIZED");
    }

    @Test
    void aSleepingPoolIsSurvivedToo() {
        MemoryPool pool = MemoryPool.builder(memory).open();
        long block = pool.allocate(4 * MIB, 0, streams[0]);
        pool.sleep(SleepMode.KEEP);
        gpu.close();
        assertThatThrownBy(pool::wake).isInstanceOf(CudaException.class);
        memory.free(block, streams[0]);
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        memory.close();
    }

    @Test
    void poolsOnADeadDeviceSleepNoMoreAndCloseAllTheSame() {
        MemoryPool pool = MemoryPool.builder(memory).open();
        long[] blocks = IntStream.range(0, DEVICES)
                .mapToLong(device -> pool.allocate(4 * MIB, device, streams[device]))
                .toArray();
        kill(BAD);
        assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP)).isInstanceOf(CudaException.class);
        assertThat(pool.isAsleep()).isFalse();
        for (int device = 0; device < DEVICES; device++) {
            memory.free(blocks[device], streams[device]);
        }
        pool.close();
        assertThat(pool.isDrained()).isTrue();
        assertAllIsBack(0);
        assertAllIsBack(DEVICES - 1);
    }

    @Test
    void aPoolSleepsAndWakesOnAllDevicesOrOnNone() {
        MemoryPool pool = MemoryPool.builder(memory).open();
        long[] blocks = IntStream.range(0, DEVICES)
                .mapToLong(device -> pool.allocate(10 * MIB, device, streams[device]))
                .toArray();
        pool.sleep(SleepMode.KEEP);
        assertThat(reserved(pool)).containsOnly(0);
        long others = memory.allocate(CAPACITY, BAD, streams[BAD]);
        assertThatThrownBy(pool::wake).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(reserved(pool)).containsOnly(0);
        assertThat(pool.isAsleep()).isTrue();
        memory.free(others, streams[BAD]);
        pool.wake();
        assertThat(reserved(pool)).doesNotContain(0);
        for (int device = 0; device < DEVICES; device++) {
            memory.free(blocks[device], streams[device]);
        }
        pool.close();
        IntStream.range(0, DEVICES).forEach(this::assertAllIsBack);
    }

    private long[] reserved(MemoryPool pool) {
        return IntStream.range(0, DEVICES)
                .mapToLong(device -> pool.reservedBytes(device).orElseThrow())
                .toArray();
    }

    @Test
    void whatIsCurrentStaysCurrentWhateverADeviceIsAskedFor() {
        long before = gpu.devices().enterContext(0);
        MemoryPool pool = MemoryPool.builder(memory).open();
        long block = pool.allocate(4 * MIB, BAD, streams[BAD]);
        pool.openBetween(BAD, 5);
        pool.sleep(SleepMode.KEEP);
        pool.wake();
        memory.trim(BAD, 0, TrimMode.SYNCHRONIZE);
        memory.free(block, streams[BAD]);
        pool.close();
        assertThat(gpu.devices().enterContext(1)).isEqualTo(gpu.devices().primaryContext(0));
        gpu.devices().leaveContext(1, before);
    }

    @Test
    void aProcessThatUsesOneDeviceMakesNoContextOnTheOthers() {
        SimulatedGpu fresh =
                SimulatedGpu.builder().devices(DEVICES).capacityBytes(CAPACITY).build();
        try (DeviceMemory own = DeviceMemory.builder(fresh).catalog(found()).open()) {
            long stream = fresh.streams().create(BAD);
            try (MemoryPool pool = MemoryPool.builder(own).open();
                    Scope _ = pool.enter();
                    DeviceBuffer buffer = DeviceBuffer.allocate(own, MIB, BAD, stream)) {
                buffer.copyFrom(MemorySegment.ofArray(new byte[1 << 20]));
                pool.sleep(SleepMode.KEEP);
                pool.wake();
                own.recordUse(buffer.address(), fresh.streams().create(BAD));
                own.trim(BAD, 0, TrimMode.SYNCHRONIZE);
            }
            PinnedMemory.of(own).trim();
        }
        assertThat(IntStream.range(0, DEVICES).filter(fresh.devices()::isUsed)).containsExactly(BAD);
    }

    @Test
    void pinnedMemoryComesFromADeviceWhoseContextLives() {
        try (PinnedBuffer _ = PinnedMemory.of(memory).allocate(MIB)) {
            kill(0);
        }
        PinnedMemory.of(memory).trim();
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, MIB, 1, streams[1])) {
            buffer.copyFrom(MemorySegment.ofArray(new byte[1 << 20]));
        }
        assertThat(PinnedMemory.of(memory).trim()).isPositive();
    }

    @Test
    void peersReachAPoolBothWaysWhatItHasAndWhatComes() {
        MemoryPool pool = MemoryPool.builder(memory).open();
        MemoryPool closed = MemoryPool.builder(memory).open();
        long before = pool.allocate(3 * MIB, 1, streams[1]);
        long notOpened = closed.allocate(3 * MIB, 1, streams[1]);
        pool.openBetween(1, 6);
        pool.openTo(1, 6);
        long after = pool.allocate(40 * MIB, 1, streams[1]);
        long back = pool.allocate(40 * MIB, 6, streams[6]);

        copies(6, back, before, 3 * MIB);
        copies(6, back, after, 40 * MIB);
        copies(1, after, back, 40 * MIB);
        assertThatThrownBy(() -> copies(6, back, notOpened, MIB)).isInstanceOf(CudaException.class);
        assertThatThrownBy(() -> copies(5, before, before + MIB, MIB)).isInstanceOf(CudaException.class);

        pool.sleep(SleepMode.KEEP);
        pool.wake();
        copies(6, back, after, 40 * MIB);
        copies(1, before, back, 3 * MIB);
        memory.free(before, streams[1]);
        memory.free(after, streams[1]);
        memory.free(back, streams[6]);
        memory.free(notOpened, streams[1]);
        assertThat(gpu.misuses()).extracting(Misuse::kind).containsOnly(Misuse.Kind.ACCESS_WITHOUT_RIGHTS);
    }

    private void copies(int device, long target, long source, long byteSize) {
        gpu.copies().onDevice(device, target, source, byteSize, streams[device]);
        gpu.devices().synchronize(device);
    }

    @Test
    void movedPagesAreOpenToPeersUnderAllTheirAddresses() {
        MemoryPool pool = MemoryPool.builder(memory).spec("caching:fit=tight").open();
        long first = pool.allocate(200 * MIB, 0, streams[0]);
        memory.free(first, streams[0]);
        gpu.streams().synchronize(0, streams[0]);
        long other = gpu.streams().create(0);
        long moved = pool.allocate(180 * MIB, 0, other); // pages of the first one, at addresses of this one
        pool.openTo(0, 7);
        copies(7, moved, moved + 90 * MIB, 80 * MIB);
        memory.free(moved, other);
        gpu.streams().synchronize(0, other);
        long again = pool.allocate(200 * MIB, 0, streams[0]);
        copies(7, again, again + 100 * MIB, 100 * MIB);
        memory.free(again, streams[0]);
    }

    @Test
    void accessThatTheDriverRefusesIsRefusedToAll() {
        MemoryPool pool =
                MemoryPool.builder(memory).spec("caching:page_size=2MiB").open();
        long block = pool.allocate(20 * MIB, 0, streams[0]);
        long mine = memory.allocate(20 * MIB, 4, streams[4]);
        gpu.faults().failOn(DriverCall.MEM_SET_ACCESS, 5, 1, CudaResult.UNKNOWN);
        assertThatThrownBy(() -> pool.openTo(0, 4)).isInstanceOf(CudaException.class);
        assertThatThrownBy(() -> copies(4, mine, block, MIB)).isInstanceOf(CudaException.class);
        pool.openTo(0, 4);
        copies(4, mine, block, 20 * MIB);
        memory.free(block, streams[0]);
        memory.free(mine, streams[4]);
    }

    @ParameterizedTest
    @ValueSource(strings = {"direct", "caching:source=linear"})
    void whoCanNotOpenItsMemorySaysSo(String spec) {
        MemoryPool pool = MemoryPool.builder(memory).spec(spec).open();
        assertThatThrownBy(() -> pool.openTo(0, 1))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("device 1");
        assertThatThrownBy(() -> pool.openTo(0, DEVICES)).isInstanceOf(IndexOutOfBoundsException.class);
        pool.openTo(2, 2);
    }

    @Test
    void aFaultOfOneDeviceIsToldWithItsDevice() {
        gpu.faults().failOn(BAD, DriverCall.MEM_CREATE, 0, 1000, CudaResult.OUT_OF_MEMORY);
        memory.setCurrent("caching");
        assertThatThrownBy(() -> memory.allocate(MIB, BAD, streams[BAD]))
                .isInstanceOfSatisfying(
                        DeviceOutOfMemoryException.class,
                        failure -> assertThat(failure.device()).isEqualTo(BAD));
        assertThat(Arrays.stream(streams).distinct().count()).isEqualTo(DEVICES);
    }
}
