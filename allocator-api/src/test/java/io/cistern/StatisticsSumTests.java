package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/// Figures of several allocators together, of which some can't tell what they hold.
class StatisticsSumTests {
    private static AllocatorStatistics statistics(long base, OptionalLong reserved) {
        return new AllocatorStatistics(base + 1, base + 2, base + 3, base + 4, base + 5, base + 6, reserved);
    }

    @Test
    void eachFigureIsAddedAndTheKnownBytesAreReserved() {
        AllocatorStatistics first = statistics(10, OptionalLong.of(300));
        AllocatorStatistics silent = statistics(20, OptionalLong.empty());
        AllocatorStatistics third = statistics(40, OptionalLong.of(500));
        assertThat(AllocatorStatistics.sum(List.of(first, silent, third)))
                .isEqualTo(new AllocatorStatistics(73, 76, 79, 82, 85, 88, OptionalLong.of(800)));
        assertThat(AllocatorStatistics.sum(List.of(silent)).reservedBytes()).isEmpty();
        assertThat(AllocatorStatistics.sum(List.of()))
                .isEqualTo(new AllocatorStatistics(0, 0, 0, 0, 0, 0, OptionalLong.empty()));
    }

    @Test
    void whatTrimsReturnedAndLeftIsAdded() {
        Left busy = new Left(Reason.IN_FLIGHT, OptionalLong.of(7), 30);
        Left used = new Left(Reason.IN_USE, OptionalLong.empty(), 70);
        Left more = new Left(Reason.IN_USE, OptionalLong.empty(), 5);
        TrimResult first = new TrimResult(10, OptionalLong.of(100), List.of(busy, used));
        TrimResult second = new TrimResult(20, OptionalLong.of(5), List.of(more));
        TrimResult both = TrimResult.sum(List.of(first, second));
        assertThat(both).isEqualTo(new TrimResult(30, OptionalLong.of(105), List.of(busy, used, more)));
        assertThat(both.leftBytes(Reason.IN_USE)).isEqualTo(75);
        assertThat(both.leftBytes(Reason.IN_FLIGHT)).isEqualTo(30);
        assertThat(both.leftBytes(Reason.KEPT)).isZero();
        TrimResult silent = new TrimResult(1, OptionalLong.empty(), List.of());
        assertThat(TrimResult.sum(List.of(silent, second)))
                .isEqualTo(new TrimResult(21, OptionalLong.empty(), List.of(more)));
    }
}
