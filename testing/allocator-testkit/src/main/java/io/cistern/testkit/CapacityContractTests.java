package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Running out of memory: a typed error, nothing lost, and everything usable again afterwards.
abstract class CapacityContractTests extends ConformanceContractTests {
    private static final long BLOCK_BYTES = 16 * KIB;
    private static final int PAIRS = 60;

    /// A few idle blocks, in as many of the pieces in which the driver obtains memory.
    private static final long SLACK_BYTES = 2 * MIB + 4 * BLOCK_BYTES;

    CapacityContractTests(AllocatorConformance suite) {
        super(suite);
    }

    private long capacity() {
        return driver.memory().freeBytes(DEVICE);
    }

    private @Nullable Block tryAllocate(long byteSize, long stream) {
        try {
            return allocate(byteSize, stream);
        } catch (DeviceOutOfMemoryException full) {
            return null;
        }
    }

    /// Allocates until the device is full.
    private List<Block> fill(long byteSize, long stream) {
        List<Block> blocks = new ArrayList<>();
        for (Block block = tryAllocate(byteSize, stream); block != null; block = tryAllocate(byteSize, stream)) {
            blocks.add(block);
        }
        return blocks;
    }

    private void freeAll(List<Block> blocks) {
        blocks.forEach(this::free);
        assertContents();
    }

    @Test
    void moreThanTheDeviceHasIsOutOfMemoryAndTheNextAllocationWorks() {
        long stream = stream();
        for (long byteSize : new long[] {driver.devices().totalBytes(DEVICE) + 1, 1L << 46, Long.MAX_VALUE}) {
            DeviceOutOfMemoryException failure = catchThrowableOfType(
                    DeviceOutOfMemoryException.class, () -> allocator.allocate(byteSize, DEVICE, stream));
            assertThat(failure).as("%s bytes", byteSize).isNotNull();
            assertThat(failure.byteSize()).isEqualTo(byteSize);
            assertThat(failure.device()).isEqualTo(DEVICE);
            free(allocate(MIB, stream));
        }
        assertContents();
    }

    /// The freed block may wait for the other stream until the host waits for it. The allocator may refuse only
    /// after that.
    @Test
    void aRefusedRequestIsRefusedAgainWhileNothingChanges() {
        long[] streams = streams(2);
        List<Block> blocks = fill(capacity() / 16, streams[0]);
        Block used = blocks.removeLast();
        use(used, streams[1]);
        free(used);
        for (long byteSize : new long[] {used.byteSize() * 3, used.byteSize(), MIB, KIB}) {
            if (tryAllocate(byteSize, streams[1]) == null) {
                assertThat(tryAllocate(byteSize, streams[1]))
                        .as("%s bytes, asked for again", byteSize)
                        .isNull();
            }
        }
        freeAll(blocks);
    }

    @Test
    void aFullDeviceIsUsableAgainAfterOneFree() {
        long stream = stream();
        List<Block> blocks = fill(capacity() / 16, stream);
        assertThat(blocks).hasSizeGreaterThanOrEqualTo(12);
        free(blocks.removeLast());
        synchronize();
        blocks.add(allocate(capacityOfOne(blocks), stream));
        freeAll(blocks);
    }

    private static long capacityOfOne(List<Block> blocks) {
        return blocks.getFirst().byteSize();
    }

    @Test
    void theDeviceIsFilledAgainAsFullAsBefore() {
        long stream = stream();
        long byteSize = capacity() / 16;
        int first = 0;
        for (int round = 0; round < 3; round++) {
            List<Block> blocks = fill(byteSize, stream);
            first = round == 0 ? blocks.size() : first;
            assertThat(blocks).as("round %s", round).hasSizeGreaterThanOrEqualTo(first);
            freeAll(blocks);
        }
    }

    @Test
    void memoryFreedInOneSizeIsUsableInAnother() {
        long stream = stream();
        long capacity = capacity();
        for (int part : new int[] {32, 5, 17, 2, 47, 3, 64, 16, 4}) {
            List<Block> blocks = new ArrayList<>();
            long byteSize = capacity * 3 / 4 / part;
            for (int i = 0; i < part; i++) {
                blocks.add(allocate(byteSize, stream));
            }
            freeAll(blocks);
        }
    }

    @Test
    void memoryFreedOnOneStreamIsUsableOnAnother() {
        long capacity = capacity();
        for (long stream : streams(4)) {
            List<Block> blocks = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                blocks.add(allocate(capacity * 3 / 32, stream));
            }
            freeAll(blocks);
        }
    }

    @Test
    void memoryUnderWayOnAnotherStreamIsWaitedForRatherThanRefused() {
        long first = stream();
        long second = stream();
        long byteSize = capacity() * 5 / 8;
        free(allocate(byteSize, first));
        free(allocate(byteSize, second));
        assertContents();
    }

    @Test
    void equalRoundsNeedNoMoreMemoryThanTheFirst() {
        long[] streams = streams(2);
        rounds(50, streams);
        long free = capacity();
        long objects = sum(driverObjects());
        rounds(300, streams);
        assertThat(free - capacity())
                .as("bytes that %s holds after 300 equal rounds, beyond those of the first 50", allocator.name())
                .isLessThanOrEqualTo(SLACK_BYTES);
        assertThat(sum(driverObjects()) - objects)
                .as("events, streams, pools and ranges that %s adds in 300 equal rounds", allocator.name())
                .isLessThan(100);
    }

    /// Each round frees some blocks on their own stream, one on another, one that both used, and one behind an event.
    private void rounds(int count, long[] streams) {
        for (int i = 0; i < count; i++) {
            for (int pair = 0; pair < PAIRS; pair++) {
                memory.free(allocator.allocate(BLOCK_BYTES, DEVICE, streams[0]), streams[0]);
            }
            handOver(allocate(BLOCK_BYTES, streams[0]), streams[1]);
            Block used = allocate(BLOCK_BYTES, streams[1]);
            use(used, streams[0]);
            free(used);
            Block last = allocate(BLOCK_BYTES, streams[1]);
            order(streams[1], streams[0]);
            freeAfter(last, streams[0]);
            synchronize();
        }
        assertContents();
    }

    private static long sum(Map<String, Long> objects) {
        return objects.values().stream().mapToLong(Long::longValue).sum();
    }

    @Test
    void trimmingAnIdleAllocatorGivesEverythingBack() {
        long before = capacity();
        long stream = stream();
        List<Block> blocks = new ArrayList<>();
        for (long byteSize = 1; byteSize <= 64 * MIB; byteSize *= 4) {
            blocks.add(allocate(byteSize, stream));
        }
        long held = reservedBytes().orElse(0);
        freeAll(blocks);
        trimAll(TrimMode.WITHOUT_WAITING);
        if (reservedBytes().isPresent()) {
            assertThat(reservedBytes()).as("reservedBytes after the trim").hasValue(0);
            assertThat(held).as("reservedBytes with live blocks").isPositive();
            assertThat(before - capacity()).isLessThan(64 * MIB);
        }
    }

    @Test
    void trimmingLeavesLiveBlocksAlone() {
        long stream = stream();
        List<Block> kept = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            Block block = allocate((1L + i) * 200 * KIB, stream);
            if (i % 4 == 0) {
                kept.add(block);
            } else {
                free(block);
            }
        }
        synchronize();
        allocator.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
        kept.forEach(block -> verify(block, stream));
        free(allocate(30 * MIB, stream));
        assertContents();
    }
}
