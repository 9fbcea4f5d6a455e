package io.cistern.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.AllocatorStatistics;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/// The framework's counts are right, whatever the allocator.
abstract class StatisticsContractTests extends ConformanceContractTests {
    StatisticsContractTests(AllocatorConformance suite) {
        super(suite);
    }

    private AllocatorStatistics statistics() {
        return allocator.statistics(DEVICE);
    }

    @Test
    void nothingIsCountedAtFirst() {
        assertThat(statistics().allocations()).isZero();
        assertThat(statistics().requestedBytes()).isZero();
        assertThat(statistics().requestedPeakBytes()).isZero();
    }

    /// Programs ask for figures when memory has run out.
    @Test
    void figuresOfAnAllocatorThatServedNobodyTakeNoMemory() {
        long before = driver.memory().freeBytes(DEVICE);
        allocator.memoryStatistics(DEVICE);
        allocator.memorySummary(DEVICE);
        allocator.statistics(DEVICE);
        allocator.reservedBytes(DEVICE);
        allocator.resetPeaks(DEVICE);
        allocator.resetTotals(DEVICE);
        assertThat(allocator.liveBlocks()).isEmpty();
        assertThat(driver.memory().freeBytes(DEVICE)).isGreaterThanOrEqualTo(before);
    }

    @Test
    void requestedBytesAreExactlyWhatWasAskedFor() {
        long stream = stream();
        Block first = allocate(1000, stream);
        Block second = allocate(3 * MIB + 1, stream);
        assertThat(statistics().requestedBytes()).isEqualTo(1000 + 3 * MIB + 1);
        free(first);
        assertThat(statistics().requestedBytes()).isEqualTo(3 * MIB + 1);
        free(second);
        assertThat(statistics().requestedBytes()).isZero();
        assertThat(statistics().requestedTotalBytes()).isEqualTo(1000 + 3 * MIB + 1);
        assertContents();
    }

    @Test
    void thePeakStaysWhenMemoryIsFreed() {
        long stream = stream();
        free(allocate(5 * MIB, stream));
        free(allocate(2 * MIB, stream));
        assertThat(statistics().requestedPeakBytes()).isGreaterThanOrEqualTo(5 * MIB);
        assertThat(statistics().requestedBytes()).isZero();
    }

    @Test
    void allocationsAndFreesAreCounted() {
        long stream = stream();
        List<Block> blocks = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            blocks.add(allocate(KIB, stream));
        }
        blocks.subList(0, 4).forEach(this::free);
        assertThat(statistics().allocations()).isEqualTo(10);
        assertThat(statistics().frees()).isEqualTo(4);
        assertThat(statistics().liveBlocks()).isEqualTo(6);
    }

    @Test
    void reservedBytesCoverWhatIsLiveAndAgreeWithTheDriver() {
        long before = driver.memory().freeBytes(DEVICE);
        long stream = stream();
        for (long byteSize = 1; byteSize <= 64 * MIB; byteSize = byteSize * 3 + 1) {
            allocate(byteSize, stream);
            OptionalLong reserved = reservedBytes();
            if (reserved.isPresent()) {
                assertThat(reserved.getAsLong())
                        .as(
                                "reservedBytes of %s, which must cover its live blocks; if unknown, it must be empty",
                                memory.allocators())
                        .isGreaterThanOrEqualTo(live.byteSize());
            }
        }
        synchronize(); // managed memory takes device memory at its first use
        long taken = before - driver.memory().freeBytes(DEVICE);
        assertThat(taken).isGreaterThanOrEqualTo(live.byteSize());
        assertThat(statistics().reservedBytes()).isEqualTo(allocator.reservedBytes(DEVICE));
    }
}
