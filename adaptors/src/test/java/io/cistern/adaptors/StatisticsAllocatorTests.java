package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import org.junit.jupiter.api.Test;

/// Blocks count for the regions they were allocated in.
final class StatisticsAllocatorTests extends AdaptorContract {
    @Override
    StatisticsAllocator over(DeviceAllocator upstream) {
        return new StatisticsAllocator(upstream);
    }

    @Override
    long believedLive(AllocatorAdaptor adaptor) {
        RegionStatistics all = ((StatisticsAllocator) adaptor).statistics("");
        return all.allocations() - all.frees();
    }

    @Test
    void innerRegionsCountForOuterOnes() {
        StatisticsAllocator statistics = over(upstream);
        long early = statistics.allocate(1, DEVICE, STREAM);
        long inner;
        try (var _ = statistics.enter("step")) {
            statistics.free(statistics.allocate(10, DEVICE, STREAM), 10, DEVICE, STREAM);
            try (var _ = statistics.enter("forward")) {
                inner = statistics.allocate(100, DEVICE, STREAM);
            }
        }
        statistics.free(early, 1, DEVICE, STREAM);
        assertThat(statistics.statistics("forward")).isEqualTo(new RegionStatistics(1, 0, 0, 100, 100, 100));
        assertThat(statistics.statistics("step")).isEqualTo(new RegionStatistics(2, 1, 0, 100, 100, 110));
        assertThat(statistics.statistics("")).isEqualTo(new RegionStatistics(3, 2, 0, 100, 101, 111));
        statistics.free(inner, 100, DEVICE, STREAM); // outside, and still the region's
        assertThat(statistics.statistics("forward")).isEqualTo(new RegionStatistics(1, 1, 0, 0, 100, 100));
        assertThat(statistics.statistics()).containsOnlyKeys("", "step", "forward");
    }

    @Test
    void aRegionInsideItselfCountsOnce() {
        StatisticsAllocator statistics = over(upstream);
        try (var _ = statistics.enter("again");
                var _ = statistics.enter("between");
                var _ = statistics.enter("again")) {
            statistics.allocate(10, DEVICE, STREAM);
        }
        assertThat(statistics.statistics("again").requestedBytes()).isEqualTo(10);
        assertThat(statistics.statistics("between").requestedBytes()).isEqualTo(10);
    }

    @Test
    void otherThreadsAreNotInTheRegion() {
        StatisticsAllocator statistics = over(upstream);
        try (var _ = statistics.enter("mine")) {
            onOtherThread(() -> statistics.allocate(10, DEVICE, STREAM));
        }
        assertThat(statistics.statistics("mine").allocations()).isZero();
        assertThat(statistics.statistics("").allocations()).isOne();
        assertThat(statistics.statistics("never").allocations()).isZero();
    }

    @Test
    void failuresAreCountedWhereTheyHappen() {
        StatisticsAllocator statistics = over(upstream.failing(1));
        try (var _ = statistics.enter("full")) {
            assertThatThrownBy(() -> statistics.allocate(10, DEVICE, STREAM))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
        }
        assertThat(statistics.statistics("full")).isEqualTo(new RegionStatistics(0, 0, 1, 0, 0, 0));
    }

    @Test
    void regionsAreLeftInOrder() {
        StatisticsAllocator statistics = over(upstream);
        StatisticsRegion outer = statistics.enter("outer");
        try (var _ = statistics.enter("inner")) {
            assertThatThrownBy(outer::close)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("outer");
        }
        outer.close();
    }
}
