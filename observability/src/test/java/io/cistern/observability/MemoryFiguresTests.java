package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;

import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// The figures of a device memory in one reading.
final class MemoryFiguresTests extends ObservedMemory {
    private MemoryFigures.OfAllocator only() {
        return MemoryFigures.of(memory).devices().getFirst().allocators().getFirst();
    }

    @Test
    void aDeviceTellsItsNameAndItsMemory() {
        long address = allocate(8 * MIB);
        var device = MemoryFigures.of(memory).devices().getFirst();
        assertThat(device.name()).isEqualTo(gpu.devices().name(DEVICE));
        assertThat(device.totalBytes()).isEqualTo(256 * MIB);
        assertThat(device.freeBytes())
                .isEqualTo(gpu.memory().info(DEVICE).freeBytes())
                .isLessThan(256 * MIB);
        free(address);
    }

    @Test
    void theFiguresOfAnAllocatorAreThoseItTells() {
        long address = allocate(3 * MIB);
        free(allocate(1000));
        var figures = only();
        var statistics = memory.current(DEVICE).statistics(DEVICE);
        assertThat(figures.name()).isEqualTo("caching");
        assertThat(figures.pool()).isEmpty();
        assertThat(figures.current()).isTrue();
        assertThat(figures.liveBlocks()).isEqualTo(1);
        assertThat(figures.allocations()).isEqualTo(2);
        assertThat(figures.frees()).isEqualTo(1);
        assertThat(figures.requestedBytes()).isEqualTo(3 * MIB);
        assertThat(figures.requestedTotalBytes()).isEqualTo(3 * MIB + 1000);
        assertThat(figures.reservedBytes()).isEqualTo(statistics.reservedBytes().orElseThrow());
        assertThat(figures.largestFreeBytes()).isPositive();
        assertThat(figures.strandedBytes()).isNotNegative();
        assertThat(figures.tiers())
                .extracting(MemoryFigures.TierHits::tier)
                .containsExactly("thread_cache", "shard", "pages");
        free(address);
    }

    @Test
    void whatAnAllocatorCantTellIsUnknown() {
        DeviceAllocator silent = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return gpu.memory().allocate(device, byteSize);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                gpu.memory().free(device, address);
            }
        };
        try (var mine = memory.open(OpenOptions.made("mine", silent))) {
            long address = mine.allocate(5, DEVICE, stream);
            var figures =
                    MemoryFigures.of(memory).devices().getFirst().allocators().getLast();
            assertThat(figures.name()).isEqualTo("mine");
            assertThat(figures.current()).isFalse();
            assertThat(figures.requestedBytes()).isEqualTo(5);
            assertThat(figures.largestFreeBytes()).isEqualTo(MemoryFigures.UNKNOWN);
            assertThat(figures.strandedBytes()).isEqualTo(MemoryFigures.UNKNOWN);
            assertThat(figures.tiers()).isEmpty();
            free(address);
        }
    }

    @Test
    void figuresAndSnapshotsOutliveTheContext() {
        long address = allocate(3 * MIB);
        gpu.faults().loseContextOn(DriverCall.STREAM_SYNCHRONIZE, 0, CudaResult.ILLEGAL_ADDRESS);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> gpu.streams().synchronize(DEVICE, stream));
        assertThat(MemoryFigures.of(memory).devices().getFirst().freeBytes()).isEqualTo(MemoryFigures.UNKNOWN);
        assertThat(only().requestedBytes()).isEqualTo(3 * MIB);
        MemorySnapshot snapshot = MemorySnapshot.take(memory);
        assertThat(snapshot.devices()).isEmpty();
        assertThat(snapshot.segments()).isNotEmpty();
        free(address);
    }

    @Test
    void hitPercentsOfNoRequestAreUnknown() {
        try (var unused = memory.open("caching")) {
            assertThat(MemoryFigures.of(memory)
                            .devices()
                            .getFirst()
                            .allocators()
                            .getLast()
                            .tiers())
                    .isNotEmpty()
                    .allSatisfy(tier -> assertThat(tier.hitPercent()).isEqualTo((int) MemoryFigures.UNKNOWN));
            assertThat(unused.memoryStatistics(DEVICE))
                    .containsEntry("tier.shard.hits", 0L)
                    .doesNotContainKey("tier.shard.hit_percent");
        }
    }

    @Test
    void poolsAndAllocatorsOfOneSpecAreToldApart() {
        try (MemoryPool _ = MemoryPool.builder(memory).tag("gradients").open();
                var _ = memory.open("caching")) {
            assertThat(MemoryFigures.of(memory).devices().getFirst().allocators())
                    .extracting(MemoryFigures.OfAllocator::pool, MemoryFigures.OfAllocator::id)
                    .containsExactlyInAnyOrder(tuple("", 1), tuple("", 2), tuple("gradients", 1));
        }
    }
}
