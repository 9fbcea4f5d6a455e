package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.adaptors.AllocationListener;
import io.cistern.adaptors.EventAllocator;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.SleepMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Buffers leave their device and come back with what was in them.
@Timeout(60)
final class SpillStoreTests {
    private static final long MIB = 1 << 20;
    private static final long SIZE = 16 * MIB;

    @TempDir
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(64 * MIB).build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open();
    private final Allocator allocator = memory.setCurrent("arbiter:patience_millis=2,upstream=caching");
    private final TaskArbiter arbiter = allocator.extension(TaskArbiter.class).orElseThrow();
    private final MemoryKernels kernels = MemoryKernels.load(gpu, 0);
    private final MemorySegment counter =
            gpu.memory().allocateHost(0, Long.BYTES).fill((byte) 0);
    private final long stream = gpu.streams().create(0);
    private SpillStore store;

    @BeforeEach
    void open() {
        store = SpillStore.open(memory, arbiter, 2 * SIZE, folder);
    }

    @AfterEach
    void close() throws IOException {
        store.close();
        assertThat(files()).isEmpty();
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        assertThat(store.statistics().deviceBytes()
                        + store.statistics().hostBytes()
                        + store.statistics().fileBytes())
                .isZero();
        gpu.devices().synchronize(0);
        assertThat(mismatches()).isZero();
        assertThat(gpu.misuses()).isEmpty();
        memory.close();
        gpu.close();
    }

    private List<Path> files() throws IOException {
        List<Path> all = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
            entries.forEach(all::add);
        }
        return all;
    }

    private long mismatches() {
        gpu.devices().synchronize(0);
        return counter.get(ValueLayout.JAVA_LONG, 0);
    }

    @Test
    void aNewStreamWaitsForTheEndedOneThatHadItsHandle() {
        long ended = gpu.streams().create(0);
        SpillableBuffer buffer = store.allocate(SIZE, 0, ended, 0);
        try (SpillableBuffer.Lease _ = buffer.acquire(ended)) {
            gpu.keepBusy(0, ended, 1_000_000_000);
        }
        memory.streamClosing(0, ended);
        gpu.streams().destroy(0, ended);
        long next = gpu.streams().create(0);
        assertThat(next).isEqualTo(ended);
        try (SpillableBuffer.Lease _ = buffer.acquire(next)) {
            assertThat(gpu.streams().isIdle(0, next)).isFalse();
        }
        gpu.passTime(1_000_000_000);
        buffer.close();
    }

    private SpillableBuffer filled(int pattern, int priority) {
        SpillableBuffer buffer = store.allocate(SIZE, 0, stream, priority);
        write(buffer, pattern, stream);
        return buffer;
    }

    private void write(SpillableBuffer buffer, int pattern, long on) {
        try (SpillableBuffer.Lease lease = buffer.acquire(on)) {
            gpu.copies().fillWords(0, lease.address(), pattern, buffer.byteSize() / Integer.BYTES, on);
            kernels.writeSequence(lease.address(), 100, pattern, on);
        }
    }

    /// In stream order; [#mismatches] tells.
    private void check(SpillableBuffer buffer, int pattern, long on) {
        try (SpillableBuffer.Lease lease = buffer.acquire(on)) {
            long words = buffer.byteSize() / Integer.BYTES;
            kernels.countSequenceMismatches(lease.address(), 100, pattern, counter.address(), on);
            kernels.countMismatches(lease.address() + 400, words - 100, pattern, counter.address(), on);
        }
    }

    @Test
    void whatSleepsNeitherLeavesNorIsLeased() {
        try (MemoryPool pool = MemoryPool.builder(memory).open()) {
            SpillableBuffer buffer = filledIn(pool, 5);
            pool.sleep(SleepMode.KEEP);
            assertThat(store.spill(0, SIZE)).isZero();
            assertThatThrownBy(() -> buffer.acquire(stream)).isInstanceOf(MemoryAsleepException.class);
            pool.wake();
            check(buffer, 5, stream);
            buffer.close();
        }
    }

    private SpillableBuffer filledIn(MemoryPool pool, int pattern) {
        try (Scope _ = pool.enter()) {
            return filled(pattern, 0);
        }
    }

    @Test
    void whatLeftForTheHostComesBackWhenItIsTouched() {
        SpillableBuffer buffer = filled(7, 0);
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
        assertThat(buffer.place()).isEqualTo(SpillPlace.HOST);
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        assertThat(store.statistics().hostBytes()).isEqualTo(SIZE);

        check(buffer, 7, stream);

        assertThat(buffer.place()).isEqualTo(SpillPlace.DEVICE);
        assertThat(store.statistics().spills()).isOne();
        assertThat(store.statistics().returnedBytes()).isEqualTo(SIZE);
        assertThat(mismatches()).isZero();
    }

    @Test
    void theChecksWouldFindOtherBytes() {
        SpillableBuffer buffer = filled(7, 0);
        check(buffer, 8, stream);
        assertThat(mismatches()).isPositive();
        counter.fill((byte) 0);
    }

    @Test
    void whatTheHostHasNoRoomForGoesOnToFilesOldestFirst() throws IOException {
        List<SpillableBuffer> buffers = List.of(filled(1, 0), filled(2, 0), filled(3, 0));
        assertThat(store.spill(0, 3 * SIZE)).isEqualTo(3 * SIZE);
        assertThat(buffers.stream().map(SpillableBuffer::place))
                .containsExactly(SpillPlace.FILE, SpillPlace.HOST, SpillPlace.HOST);
        assertThat(files()).hasSize(1);
        for (int i = 0; i < 3; i++) {
            check(buffers.get(i), i + 1, stream);
        }
        assertThat(mismatches()).isZero();
        assertThat(files()).isEmpty();
        assertThat(store.statistics().writtenBytes()).isEqualTo(SIZE);
    }

    @Test
    void theLeastImportantLeavesFirstAndOfTheseTheLeastRecentlyUsed() {
        SpillableBuffer important = filled(1, 5);
        SpillableBuffer usedLater = filled(2, 0);
        SpillableBuffer usedBefore = filled(3, 0);
        check(usedLater, 2, stream);

        store.spill(0, 1);
        assertThat(usedBefore.place()).isEqualTo(SpillPlace.HOST);
        store.spill(0, 1);
        assertThat(usedLater.place()).isEqualTo(SpillPlace.HOST);
        assertThat(important.place()).isEqualTo(SpillPlace.DEVICE);
    }

    /// However many stand behind it: what sorts them all leaves garbage for each.
    @Test
    void whatLeavesNextIsFoundWithoutALookAtAllOthers() {
        com.sun.management.ThreadMXBean thread = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        List<SpillableBuffer> buffers = new ArrayList<>();
        for (int i = 0; i < 5_000; i++) {
            buffers.add(store.allocate(512, 0, stream, 0));
        }
        assertThat(store.spill(0, 1)).isEqualTo(512);
        long before = thread.getCurrentThreadAllocatedBytes();
        assertThat(store.spill(0, 512)).isEqualTo(512);
        assertThat(thread.getCurrentThreadAllocatedBytes() - before).isLessThan(16L * buffers.size());
        assertThat(buffers.subList(0, 3))
                .extracting(SpillableBuffer::place)
                .containsExactly(SpillPlace.HOST, SpillPlace.HOST, SpillPlace.DEVICE);
    }

    @Test
    void whatCameBackLeavesAsWhatWasUsedThen() {
        SpillableBuffer first = filled(1, 0);
        SpillableBuffer second = filled(2, 0);
        store.spill(0, 1);
        assertThat(first.place()).isEqualTo(SpillPlace.HOST);
        check(first, 1, stream);

        store.spill(0, 1);
        assertThat(second.place()).isEqualTo(SpillPlace.HOST);
        assertThat(first.place()).isEqualTo(SpillPlace.DEVICE);
    }

    /// Also those that were in use while others looked for one that may leave.
    @Test
    void everyBufferThatNobodyUsesMayLeave() throws Exception {
        List<SpillableBuffer> buffers = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            buffers.add(store.allocate(512, 0, stream, i % 3));
        }
        List<FutureTask<Boolean>> users = new ArrayList<>();
        for (int seed = 0; seed < 4; seed++) {
            Random random = new Random(seed);
            users.add(new FutureTask<>(() -> useOrSpill(buffers, random)));
        }
        users.forEach(Thread.ofPlatform()::start);
        for (FutureTask<Boolean> user : users) {
            assertThat(user.get()).isTrue();
        }
        store.spill(0, Long.MAX_VALUE);
        assertThat(buffers).noneMatch(each -> each.place() == SpillPlace.DEVICE);
    }

    private boolean useOrSpill(List<SpillableBuffer> buffers, Random random) {
        for (int i = 0; i < 2_000; i++) {
            if (random.nextInt(4) == 0) {
                store.spill(0, 512 * random.nextInt(4));
            } else {
                buffers.get(random.nextInt(buffers.size())).acquire(stream).close();
            }
        }
        return true;
    }

    @Test
    void aLeaseKeepsItWhereItIs() {
        SpillableBuffer buffer = filled(1, 0);
        SpillableBuffer.Lease lease = buffer.acquire(stream);
        SpillableBuffer.Lease second = buffer.acquire(stream);
        assertThat(second.address()).isEqualTo(lease.address());
        second.close();
        assertThat(store.spill(0, 1)).isZero();
        assertThatThrownBy(buffer::close).hasMessageContaining("1 open leases");
        lease.close();
        lease.close();
        assertThatThrownBy(lease::address).isInstanceOf(IllegalStateException.class);
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
        buffer.close();
        assertThatThrownBy(() -> buffer.acquire(stream)).isInstanceOf(IllegalStateException.class);
    }

    /// More than the device holds, and nobody tells the store to spill.
    @Test
    void aRefusalMakesBuffersLeave() {
        List<SpillableBuffer> buffers = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            buffers.add(filled(i, 0));
        }
        for (int i = 0; i < 10; i++) {
            check(buffers.get(i), i, stream);
        }
        assertThat(mismatches()).isZero();
        assertThat(store.statistics().fileBytes()).isPositive();
        memory.free(memory.allocate(48 * MIB, 0, stream), stream);
    }

    @Test
    void usesOnSeveralStreamsComeBeforeTheCopy() {
        long other = gpu.streams().create(0);
        SpillableBuffer buffer = filled(1, 0);
        write(buffer, 2, other);
        store.spill(0, 1);
        check(buffer, 2, stream);
        write(buffer, 3, other);
        check(buffer, 3, stream);
        assertThat(mismatches()).isZero();
        buffer.close();
        memory.streamClosing(0, other);
        gpu.streams().destroy(0, other);
    }

    @Test
    void withoutHostMemoryItGoesStraightToAFile() {
        SpillableBuffer buffer = filled(4, 0);
        gpu.faults().failOn(DriverCall.MEM_HOST_ALLOC, 0, Integer.MAX_VALUE, CudaResult.OUT_OF_MEMORY);
        assertThat(store.spill(0, 1)).isEqualTo(SIZE);
        gpu.faults().clear();
        assertThat(buffer.place()).isEqualTo(SpillPlace.FILE);
        check(buffer, 4, stream);
        assertThat(mismatches()).isZero();
    }

    @Test
    void withNowhereToGoItStaysAndTheRefusalIsTheCallers() {
        try (SpillStore nowhere = SpillStore.open(memory, arbiter, 0)) {
            SpillableBuffer buffer = nowhere.allocate(SIZE, 0, stream, 0);
            write(buffer, 5, stream);
            assertThatThrownBy(() -> memory.allocate(60 * MIB, 0, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
            check(buffer, 5, stream);
            assertThat(mismatches()).isZero();
        }
    }

    @Test
    void aCopyThatFailsLeavesItOnItsDevice() {
        SpillableBuffer buffer = filled(6, 0);
        gpu.faults().failOn(DriverCall.MEMCPY_DTOH_ASYNC, 0, 1, CudaResult.INVALID_VALUE);
        assertThat(store.spill(0, 1)).isZero();
        assertThat(buffer.place()).isEqualTo(SpillPlace.DEVICE);
        assertThat(store.statistics().failures()).isOne();
        check(buffer, 6, stream);
        assertThat(mismatches()).isZero();
    }

    @Test
    void aWriteThatFailsLeavesItOnTheHostOrTheDevice() throws IOException {
        List<SpillableBuffer> buffers = List.of(filled(1, 0), filled(2, 0), filled(3, 0));
        Files.delete(folder);
        assertThat(store.spill(0, 3 * SIZE)).isEqualTo(2 * SIZE);
        assertThat(buffers.stream().map(SpillableBuffer::place))
                .containsExactly(SpillPlace.HOST, SpillPlace.HOST, SpillPlace.DEVICE);
        assertThat(store.statistics().failures()).isPositive();
        Files.createDirectory(folder);
        for (int i = 0; i < 3; i++) {
            check(buffers.get(i), i + 1, stream);
        }
        assertThat(mismatches()).isZero();
    }

    @Test
    void aReturnThatFailsLosesNothing() throws IOException {
        SpillableBuffer buffer = filled(9, 0);
        gpu.faults().failOn(DriverCall.MEM_HOST_ALLOC, 0, 1, CudaResult.OUT_OF_MEMORY);
        store.spill(0, 1);
        Path file = files().getFirst();
        Path aside = file.resolveSibling("aside");
        Files.move(file, aside);
        assertThatThrownBy(() -> buffer.acquire(stream)).isInstanceOf(UncheckedIOException.class);
        Files.move(aside, file);
        gpu.faults().failOn(DriverCall.MEMCPY_HTOD_ASYNC, 0, 1, CudaResult.INVALID_VALUE);
        assertThatThrownBy(() -> buffer.acquire(stream)).isInstanceOf(CudaException.class);
        assertThat(buffer.place()).isEqualTo(SpillPlace.FILE);
        long most = memory.allocate(56 * MIB, 0, stream);
        assertThatThrownBy(() -> buffer.acquire(stream)).isInstanceOf(DeviceOutOfMemoryException.class);
        memory.free(most, stream);

        check(buffer, 9, stream);
        assertThat(mismatches()).isZero();
    }

    /// A buffer that is not used any more makes no room by itself: whoever waits must hear of it.
    @Test
    void aTaskThatWaitsGoesOnWhenALeaseEnds() throws Exception {
        SpillableBuffer buffer = filled(3, 0);
        CountDownLatch leased = new CountDownLatch(1);
        Task holding = arbiter.task(1, 1);
        Task waiting = arbiter.task(2, 0);
        FutureTask<Boolean> holder = start(holding, () -> {
            try (SpillableBuffer.Lease lease = buffer.acquire(stream)) {
                assertThat(lease.address()).isPositive();
                leased.countDown();
                while (arbiter.threads().stream().noneMatch(line -> line.contains("BLOCKED"))) {
                    Thread.sleep(1);
                }
            }
            arbiter.outside(() -> {
                while (store.statistics().spills() == 0) {
                    Thread.sleep(1);
                }
                return true;
            });
            return true;
        });
        leased.await();
        FutureTask<Boolean> waiter = start(waiting, () -> {
            memory.free(memory.allocate(56 * MIB, 0, stream), stream);
            return true;
        });
        assertThat(holder.get()).isTrue();
        assertThat(waiter.get()).isTrue();
        assertThat(waiting.statistics().retries()).isZero();
        check(buffer, 3, stream);
        assertThat(mismatches()).isZero();
    }

    /// Room is made before it is needed, by a listener on the bytes that are live.
    @Test
    void aThresholdSpillsAhead() {
        AllocationListener spilling = new AllocationListener() {
            @Override
            public void onThresholdExceeded(int device, long thresholdBytes, long liveBytes) {
                store.spill(device, liveBytes - thresholdBytes + 1);
            }
        };
        Allocator watched = memory.open(OpenOptions.made("watched", new EventAllocator(arbiter, spilling, 3 * SIZE)));
        try (Scope _ = watched.enter()) {
            SpillableBuffer first = filled(1, 0);
            SpillableBuffer second = filled(2, 0);
            assertThat(store.statistics().spills()).isZero();
            SpillableBuffer third = filled(3, 0);
            assertThat(List.of(first.place(), second.place(), third.place()))
                    .containsExactly(SpillPlace.HOST, SpillPlace.DEVICE, SpillPlace.DEVICE);
            for (SpillableBuffer buffer : List.of(second, third)) {
                buffer.close();
            }
            check(first, 1, stream);
            first.close();
        }
        assertThat(mismatches()).isZero();
    }

    private static FutureTask<Boolean> start(Task task, java.util.concurrent.Callable<Boolean> work) {
        FutureTask<Boolean> future = new FutureTask<>(() -> task.call(work::call));
        Thread.ofVirtual().start(future);
        return future;
    }
}
