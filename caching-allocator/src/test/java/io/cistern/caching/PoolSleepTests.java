package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.buffers.CopyMode;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.DriverCall;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.SleepMode;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Reason;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Pools over `caching` that sleep and wake, on a small simulated GPU.
final class PoolSleepTests extends PoolFixture {
    private static final long CAPACITY = 128 * MIB;
    private static final long SEED = 20261122;

    private record Block(DeviceBuffer buffer, byte[] contents) {}

    private final SplittableRandom random = new SplittableRandom(SEED);

    /// What pools that sleep keep their bytes in, once it is there.
    private final PinnedMemory pinned;

    PoolSleepTests() {
        super(CAPACITY);
        pinned = PinnedMemory.of(memory);
    }

    private DeviceBuffer buffer(MemoryPool pool, long byteSize) {
        try (Scope _ = pool.enter()) {
            return DeviceBuffer.allocate(memory, byteSize, DEVICE, stream);
        }
    }

    private Block filled(MemoryPool pool, int byteSize) {
        byte[] contents = new byte[byteSize];
        random.nextBytes(contents);
        DeviceBuffer buffer = buffer(pool, byteSize);
        buffer.copyFrom(MemorySegment.ofArray(contents));
        return new Block(buffer, contents);
    }

    /// Blocks of all sizes, and free runs between them.
    private List<Block> mixed(MemoryPool pool) {
        List<Block> blocks = new ArrayList<>();
        List<Block> freeRuns = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            (i % 3 == 0 ? freeRuns : blocks).add(filled(pool, 1 + random.nextInt(i % 2 == 0 ? 4 << 20 : 64 << 10)));
        }
        freeRuns.forEach(gap -> gap.buffer.close());
        return blocks;
    }

    private static void assertIntact(List<Block> blocks) {
        for (Block block : blocks) {
            byte[] now = new byte[block.contents.length];
            block.buffer.copyTo(MemorySegment.ofArray(now));
            assertThat(now).as("seed " + SEED).isEqualTo(block.contents);
        }
    }

    private static void close(List<Block> blocks) {
        blocks.forEach(block -> block.buffer.close());
    }

    private long usedBytes() {
        var info = gpu.memory().info(DEVICE);
        return info.totalBytes() - info.freeBytes();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"caching", "caching:page_size=2MiB", "caching:stable_mapping=true", "caching:check=checked"})
    void keptContentsAreThereAgainAtTheSameAddresses(String spec) {
        try (MemoryPool pool = builder().spec(spec).open()) {
            List<Block> blocks = mixed(pool);
            List<Long> addresses =
                    blocks.stream().map(block -> block.buffer.address()).toList();
            long reserved = pool.reservedBytes(DEVICE).orElseThrow();
            TrimResult slept = pool.sleep(SleepMode.KEEP);
            assertThat(usedBytes()).isZero();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            assertThat(slept.returnedBytes()).isEqualTo(reserved);
            assertThat(slept.left()).isEmpty();
            assertThat(pool.isAsleep()).isTrue();
            pool.wake();
            assertThat(pool.isAsleep()).isFalse();
            assertThat(blocks.stream().map(block -> block.buffer.address())).isEqualTo(addresses);
            assertIntact(blocks);
            assertThat(usedBytes()).isEqualTo(pool.reservedBytes(DEVICE).orElseThrow());
            close(blocks);
        }
    }

    /// Asleep, blocks are alive that no memory is reserved for.
    @Test
    void peaksThatAreResetInSleepBeginAtTheBlocksThatAreAlive() {
        try (MemoryPool pool = builder().open()) {
            DeviceBuffer one = buffer(pool, 20 * MIB);
            DeviceBuffer other = buffer(pool, 30 * MIB);
            pool.sleep(SleepMode.DROP);
            pool.resetPeaks(DEVICE);
            other.close();
            assertThat(pool.memoryStatistics(DEVICE))
                    .containsEntry("reserved_bytes.all.peak", 0L)
                    .containsEntry("allocated_bytes.all.current", 20 * MIB)
                    .containsEntry("allocated_bytes.all.peak", 50 * MIB);
            one.close();
        }
    }

    @Test
    void droppedMemoryComesBackAtTheSameAddressesWithoutACopy() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            long before =
                    gpu.calls().of(DriverCall.MEMCPY_DTOH_ASYNC) + gpu.calls().of(DriverCall.MEMCPY_HTOD_ASYNC);
            pool.sleep(SleepMode.DROP);
            assertThat(usedBytes()).isZero();
            pool.wake();
            assertThat(gpu.calls().of(DriverCall.MEMCPY_DTOH_ASYNC)
                            + gpu.calls().of(DriverCall.MEMCPY_HTOD_ASYNC))
                    .isEqualTo(before);
            for (Block block : blocks) {
                block.buffer.copyFrom(MemorySegment.ofArray(block.contents));
            }
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void sleepingMemoryIsAnybodys() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = List.of(filled(pool, 25 << 20));
            pool.sleep(SleepMode.KEEP);
            long others = memory.allocate(CAPACITY, DEVICE, stream);
            memory.free(others, stream);
            pool.wake(); // for which the other allocator gives back what it has idle
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void withoutMemoryThePoolSleepsOnAndCanBeWokenLater() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = List.of(filled(pool, 15 << 20), filled(pool, 15 << 20));
            pool.sleep(SleepMode.KEEP);
            long others = memory.allocate(CAPACITY - 20 * MIB, DEVICE, stream);
            assertThatThrownBy(pool::wake).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(pool.isAsleep()).isTrue();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(0);
            memory.free(others, stream);
            pool.wake();
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void whatWasFreedMeanwhileNeedNotWake() {
        try (MemoryPool pool = builder().open()) {
            List<Block> kept = List.of(filled(pool, 10 << 20));
            List<Block> freed = List.of(filled(pool, 50 << 20));
            pool.sleep(SleepMode.KEEP);
            close(freed);
            long others = memory.allocate(CAPACITY - 30 * MIB, DEVICE, stream);
            pool.wake();
            assertIntact(kept);
            assertThat(pool.statistics(DEVICE).liveBlocks()).isEqualTo(1);
            memory.free(others, stream);
            close(kept);
        }
    }

    @Test
    void usingWhatSleepsIsAnError() {
        long kernelStream = gpu.streams().create(DEVICE);
        try (MemoryPool pool = builder().tag("weights").open();
                PinnedBuffer host = pinned.allocate(4096)) {
            DeviceBuffer block = buffer(pool, 4096);
            DeviceBuffer part = block.slice(1024, 1024);
            DeviceBuffer other = DeviceBuffer.allocate(memory, 4096, DEVICE, stream);
            pool.sleep(SleepMode.KEEP);
            for (Runnable use : List.<Runnable>of(
                    () -> pool.allocate(1, DEVICE, stream),
                    () -> buffer(pool, 1),
                    block::address,
                    part::address,
                    () -> block.fill((byte) 1),
                    () -> block.copyFrom(other),
                    () -> other.copyFrom(block),
                    () -> block.copyTo(host, stream, CopyMode.BLOCKING),
                    () -> block.copyFrom(MemorySegment.ofArray(new byte[16])),
                    () -> block.recordUse(kernelStream),
                    () -> block.slice(0, 16))) {
                assertThatThrownBy(use::run)
                        .isInstanceOf(MemoryAsleepException.class)
                        .hasMessageContaining("'weights'")
                        .hasMessageContaining("asleep; wake it first");
            }
            other.fill((byte) 2);
            pool.wake();
            block.copyFrom(other);
            part.close();
            block.close();
            other.close();
        }
    }

    @Test
    void aLiveBlockOfASleepingPoolCanBeFreedByBufferAndByAddress() {
        try (MemoryPool pool = builder().open()) {
            DeviceBuffer buffer = buffer(pool, 3 * MIB);
            long address = pool.allocate(MIB, DEVICE, stream);
            pool.sleep(SleepMode.KEEP);
            buffer.close();
            memory.free(address, stream);
            assertThat(pool.liveBlockCount()).isZero();
            pool.wake();
            assertThat(usedBytes()).isZero();
            List<Block> blocks = mixed(pool);
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void virtualThreadsAreToldToo() throws InterruptedException {
        try (MemoryPool pool = builder().open()) {
            pool.sleep(SleepMode.DROP);
            List<Throwable> thrown = new ArrayList<>();
            Thread.ofVirtual()
                    .start(() -> {
                        try {
                            pool.allocate(1, DEVICE, stream);
                        } catch (RuntimeException failure) {
                            thrown.add(failure);
                        }
                    })
                    .join();
            assertThat(thrown).singleElement().isInstanceOf(MemoryAsleepException.class);
            pool.wake();
        }
    }

    @Test
    void sleepingTwiceChangesNothing() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            pool.sleep(SleepMode.KEEP);
            TrimResult again = pool.sleep(SleepMode.KEEP);
            assertThat(again.returnedBytes()).isZero();
            pool.wake();
            pool.wake();
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void whatIsKeptCanBeDroppedLater() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            pool.sleep(SleepMode.KEEP);
            long active = pinned.statistics().get("active_bytes.current");
            assertThat(active).isPositive();
            pool.sleep(SleepMode.DROP);
            assertThat(pinned.statistics()).containsEntry("active_bytes.current", 0L);
            pool.wake();
            close(blocks);
        }
    }

    @Test
    void pinnedMemoryStaysForTheNextSleepAndIsGivenBackByTrim() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            long calls = gpu.calls().of(DriverCall.MEM_HOST_ALLOC);
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            assertThat(gpu.calls().of(DriverCall.MEM_HOST_ALLOC)).isEqualTo(calls);
            pinned.trim();
            assertThat(pinned.statistics()).containsEntry("allocated_bytes.current", 0L);
            assertIntact(blocks);
            close(blocks);
        }
    }

    @ParameterizedTest
    @EnumSource(SleepMode.class)
    void aSleepingPoolCanBeClosed(SleepMode mode) {
        MemoryPool pool = builder().open();
        List<Block> blocks = mixed(pool);
        pool.sleep(mode);
        pool.close();
        assertThat(pool.isDrained()).isFalse();
        close(blocks);
        assertThat(pool.isDrained()).isTrue();
        assertThat(pool.isAsleep()).isFalse();
        assertThat(pinned.statistics()).containsEntry("active_bytes.current", 0L);
    }

    @Test
    void blocksOfAClosedPoolCanBeWokenAndRead() {
        MemoryPool pool = builder().open();
        List<Block> blocks = mixed(pool);
        pool.sleep(SleepMode.KEEP);
        pool.close();
        pool.wake();
        assertIntact(blocks);
        assertThatThrownBy(() -> pool.allocate(1, DEVICE, stream)).isInstanceOf(IllegalStateException.class);
        close(blocks);
    }

    @Test
    void anEmptyPoolSleepsToo() {
        try (MemoryPool pool = builder().open()) {
            pool.sleep(SleepMode.KEEP);
            assertThatThrownBy(() -> pool.allocate(1, DEVICE, stream)).isInstanceOf(MemoryAsleepException.class);
            pool.wake();
            memory.free(pool.allocate(1, DEVICE, stream), stream);
        }
    }

    @Test
    void trimOfASleepingPoolGivesNothingAndLosesNothing() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            pool.sleep(SleepMode.KEEP);
            assertThat(pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isZero();
            TrimResult trimmed = pool.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThat(trimmed.returnedBytes()).isZero();
            assertThat(trimmed.left()).isEmpty();
            close(blocks.subList(0, 4));
            assertThat(pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isZero();
            pool.wake();
            assertIntact(blocks.subList(4, blocks.size()));
            close(blocks);
        }
    }

    @Test
    void limitsStatisticsAndSwapsGoOn() {
        MemoryLimit limit = MemoryLimit.of("all", 64 * MIB);
        try (MemoryPool pool = builder().limitBytes(64 * MIB).open()) {
            List<Block> blocks = new ArrayList<>();
            try (Scope _ = pool.enter(ScopeOptions.all().limit(limit))) {
                blocks.add(new Block(DeviceBuffer.allocate(memory, 48 * MIB, DEVICE, stream), new byte[0]));
            }
            pool.sleep(SleepMode.DROP);
            assertThat(pool.statistics(DEVICE).requestedBytes()).isEqualTo(48 * MIB);
            assertThat(pool.statistics(DEVICE).reservedBytes()).hasValue(0);
            assertThat(memory.pools().all()).containsExactly(pool);
            memory.setCurrent("caching:page_size=2MiB");
            try (Scope _ = pool.enter(ScopeOptions.all().limit(MemoryLimit.of("made meanwhile", MIB)))) {
                assertThatThrownBy(() -> allocate(1)).isInstanceOf(MemoryAsleepException.class);
            }
            free(allocate(MIB));
            pool.wake();
            try (Scope _ = pool.enter(ScopeOptions.all().limit(limit))) {
                assertThatThrownBy(() -> allocate(32 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
                close(blocks);
                free(allocate(32 * MIB));
            }
            var figures = pool.extension(MemoryStatistics.class).orElseThrow().statistics(DEVICE);
            assertThat(figures.get("reserved_bytes.all.current"))
                    .isEqualTo(figures.get("reserved_bytes.small_pool.current")
                            + figures.get("reserved_bytes.large_pool.current"));
        }
    }

    @Test
    void aGraphOverItReplaysRightAfterWaking() {
        try (MemoryPool pool = builder().open()) {
            Block source = filled(pool, 5 << 20);
            DeviceBuffer target = buffer(pool, 5 << 20);
            long executable;
            long graph;
            try (Scope _ = pool.enter();
                    GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
                long scratch = allocate(5 << 20);
                gpu.copies().onDevice(DEVICE, scratch, source.buffer.address(), 5 << 20, stream);
                gpu.copies().onDevice(DEVICE, target.address(), scratch, 5 << 20, stream);
                free(scratch);
                graph = capture.end();
                executable = gpu.graphs().instantiate(DEVICE, graph, false);
            }
            for (int i = 0; i < 3; i++) {
                target.fill((byte) 0);
                pool.sleep(SleepMode.KEEP);
                assertThat(usedBytes()).isZero();
                pool.wake();
                gpu.graphs().launch(DEVICE, executable, stream);
                assertIntact(List.of(new Block(target, source.contents)));
            }
            gpu.graphs().destroyExecutable(DEVICE, executable);
            gpu.graphs().destroy(DEVICE, graph);
            gpu.devices().synchronize(DEVICE);
            source.buffer.close();
            target.close();
        }
    }

    @Test
    void nothingSleepsWhileAStreamOfItsDeviceIsCaptured() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
                assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP))
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("is captured");
            }
            pool.sleep(SleepMode.KEEP);
            pool.wake();
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void whatSleepsAlreadyOrHasNothingWaitsForNoCapture() {
        try (MemoryPool sleeping = builder().open();
                MemoryPool empty = builder().open()) {
            List<Block> blocks = mixed(sleeping);
            sleeping.sleep(SleepMode.KEEP);
            filled(empty, 1 << 20).buffer.close();
            empty.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            try (GraphCapture _ = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
                assertThat(sleeping.sleep(SleepMode.KEEP).left()).isEmpty();
                assertThat(empty.sleep(SleepMode.KEEP).left()).isEmpty();
            }
            sleeping.wake();
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void aStreamThatEndsWhileItsMemorySleepsLeavesWhatIsAlive() {
        try (MemoryPool pool = builder().open()) {
            long ending = gpu.streams().create(DEVICE);
            long alive = pool.allocate(8 * MIB, DEVICE, ending);
            long freed = pool.allocate(8 * MIB, DEVICE, ending);
            gpu.copies().fillBytes(DEVICE, alive, (byte) 7, 8 * MIB, ending);
            pool.sleep(SleepMode.KEEP);
            memory.free(freed, ending);
            memory.streamClosing(DEVICE, ending);
            gpu.streams().destroy(DEVICE, ending);
            pool.wake();
            try (PinnedBuffer read = pinned.allocate(8 * MIB)) {
                gpu.copies().toHost(DEVICE, read.segment(), alive, 8 * MIB, stream);
                gpu.streams().synchronize(DEVICE, stream);
                byte[] expected = new byte[8 << 20];
                java.util.Arrays.fill(expected, (byte) 7);
                assertThat(read.segment().mismatch(MemorySegment.ofArray(expected)))
                        .isEqualTo(-1);
            }
            memory.free(alive, stream);
        }
    }

    /// Requests have pools of their own, which they open and close at any time.
    @Test
    void poolsOfATagMayCloseWhileItSleepsAndWakes() throws InterruptedException {
        try (MemoryPool stays = builder().tag("model").open()) {
            Block block = filled(stays, 1 << 20);
            Thread requests = Thread.ofPlatform().start(() -> {
                for (int i = 0; i < 2000; i++) {
                    builder().tag("model").open().close();
                }
            });
            while (requests.isAlive()) {
                memory.pools().sleep("model", SleepMode.KEEP);
                memory.pools().wake("model");
                assertThat(stays.isAsleep()).isFalse();
            }
            requests.join();
            assertIntact(List.of(block));
            block.buffer.close();
        }
    }

    @Test
    void poolsOfATagSleepTogetherOrNotAtAll() {
        try (MemoryPool first = builder().tag("model").open();
                MemoryPool second = builder().tag("model").open();
                MemoryPool other = builder().tag("cache").open()) {
            List<Block> blocks = List.of(filled(first, 3 << 20), filled(second, 5 << 20), filled(other, 1 << 20));
            memory.pools().sleep("model", SleepMode.KEEP);
            assertThat(List.of(first.isAsleep(), second.isAsleep(), other.isAsleep()))
                    .containsExactly(true, true, false);
            long others = memory.allocate(CAPACITY - 10 * MIB, DEVICE, stream);
            assertThatThrownBy(() -> memory.pools().wake("model")).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(List.of(first.isAsleep(), second.isAsleep())).containsExactly(true, true);
            memory.free(others, stream);
            memory.pools().wake("model");
            assertThatThrownBy(() -> memory.pools().sleep("no such", SleepMode.KEEP))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("no pool has the tag 'no such'; known, nearest first: cache, model");
            assertIntact(blocks);
            close(blocks);
            try (MemoryPool _ = builder().tag("model").spec("direct").open()) {
                assertThatThrownBy(() -> memory.pools().sleep("model", SleepMode.KEEP))
                        .isInstanceOf(UnsupportedOperationException.class);
                assertThat(first.isAsleep()).isFalse();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"direct", "caching:source=linear", "caching:splits=false", "caching:check=paranoid"})
    void othersRefuseAndSayWhy(String spec) {
        try (MemoryPool pool = builder().spec(spec).open()) {
            assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining(spec)
                    .hasMessageContaining("can't sleep");
            memory.free(pool.allocate(MIB, DEVICE, stream), stream);
            pool.wake();
        }
    }

    @Test
    void whatTheDriverCannotPinLeavesThePoolAwake() {
        try (MemoryPool pool = builder().open()) {
            List<Block> blocks = mixed(pool);
            gpu.faults().failOn(DriverCall.MEM_HOST_ALLOC, 0, 1, io.cistern.cuda.CudaResult.OUT_OF_MEMORY);
            assertThatThrownBy(() -> pool.sleep(SleepMode.KEEP)).isInstanceOf(io.cistern.cuda.CudaException.class);
            assertThat(pool.isAsleep()).isFalse();
            assertIntact(blocks);
            close(blocks);
        }
    }

    @Test
    void reasonOfWhatStays() {
        try (MemoryPool pool = builder().open()) {
            Block block = filled(pool, 2 << 20);
            gpu.faults().failOn(DriverCall.MEM_RELEASE, 0, 1, io.cistern.cuda.CudaResult.UNKNOWN);
            TrimResult slept = pool.sleep(SleepMode.KEEP);
            assertThat(slept.leftBytes(Reason.REFUSED)).isEqualTo(usedBytes()).isPositive();
            pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            assertThat(usedBytes()).isZero();
            pool.wake();
            assertIntact(List.of(block));
            block.buffer.close();
        }
    }
}
