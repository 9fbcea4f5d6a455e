package io.cistern.async;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Left;
import io.cistern.spi.TrimResult.Reason;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Giving back, with and without waiting, and what is told of it.
class PoolTrimTests extends AsyncFixture {
    private final Allocator async = memory.open("async");
    private final long live = async.allocate(20 * MIB, DEVICE, stream);

    @AfterEach
    void free() {
        latch.release();
        memory.free(live, stream);
    }

    private void freeBehindLatch(long byteSize) {
        long address = async.allocate(byteSize, DEVICE, stream);
        latch.hold(stream);
        memory.free(address, stream);
    }

    private TrimResult trim(long keepBytes, TrimMode mode) {
        TrimResult result = async.trim(DEVICE, keepBytes, mode);
        assertThat(result.left().stream().mapToLong(Left::byteSize).sum())
                .as("what is left adds up")
                .isEqualTo(result.reservedBytes().orElseThrow());
        return result;
    }

    @Test
    void withoutWaitingOnlyWhatHasCompletedGoes() {
        freeBehindLatch(108 * MIB);
        TrimResult result = trim(0, TrimMode.WITHOUT_WAITING);
        assertThat(result.returnedBytes()).isZero();
        assertThat(result.leftBytes(Reason.IN_USE)).isEqualTo(20 * MIB);
        assertThat(result.leftBytes(Reason.IN_FLIGHT)).isEqualTo(108 * MIB);
    }

    @Test
    void afterWaitingOnlyThePagesInUseStay() {
        freeBehindLatch(108 * MIB);
        latch.release();
        TrimResult result = trim(0, TrimMode.SYNCHRONIZE);
        assertThat(result.returnedBytes()).isEqualTo(96 * MIB);
        assertThat(result.leftBytes(Reason.IN_USE)).isEqualTo(20 * MIB);
        assertThat(result.leftBytes(Reason.SHARED_WITH_USED)).isEqualTo(12 * MIB);
    }

    @Test
    void noMoreThanTheTargetStays() {
        memory.free(async.allocate(236 * MIB, DEVICE, stream), stream);
        TrimResult result = trim(100 * MIB, TrimMode.SYNCHRONIZE);
        assertThat(result.reservedBytes()).hasValue(96 * MIB);
        assertThat(result.leftBytes(Reason.KEPT)).isEqualTo(76 * MIB);
        TrimResult again = trim(96 * MIB, TrimMode.SYNCHRONIZE);
        assertThat(again.returnedBytes()).isZero();
        assertThat(again.leftBytes(Reason.KEPT)).isEqualTo(76 * MIB);
    }

    @Test
    void severalPoolsKeepTheTargetTogether() {
        try (Allocator several = memory.open("async:per_stream=true")) {
            for (long each : new long[] {stream, other}) {
                memory.free(several.allocate(128 * MIB, DEVICE, each), each);
            }
            TrimResult result = several.trim(DEVICE, 160 * MIB, TrimMode.SYNCHRONIZE);
            assertThat(result.returnedBytes()).isEqualTo(96 * MIB);
            assertThat(result.reservedBytes()).hasValue(160 * MIB);
        }
    }

    @Test
    void aDeviceThatWasNotUsedHasNothing() {
        TrimResult result = async.trim(1, 0, TrimMode.SYNCHRONIZE);
        assertThat(result.returnedBytes()).isZero();
        assertThat(result.left()).isEmpty();
        assertThat(async.memoryStatistics(1)).containsEntry("pool.count", 0L);
        assertThat(gpu.devices().isUsed(1)).isFalse();
    }

    @Test
    void statisticsAreThoseOfThePool() {
        freeBehindLatch(108 * MIB);
        assertThat(figure(async, "allocated_bytes.all.current")).isEqualTo(20 * MIB);
        assertThat(figure(async, "allocated_bytes.all.peak")).isEqualTo(128 * MIB);
        assertThat(figure(async, "active_bytes.all.current")).isEqualTo(20 * MIB);
        assertThat(figure(async, "reserved_bytes.all.current")).isEqualTo(128 * MIB);
        assertThat(figure(async, "pool.release_threshold_bytes")).isEqualTo(Long.MAX_VALUE);
        latch.release();
        trim(0, TrimMode.SYNCHRONIZE);
        assertThat(figure(async, "reserved_bytes.all.peak")).isEqualTo(128 * MIB);
        async.resetPeaks(DEVICE);
        assertThat(figure(async, "reserved_bytes.all.peak")).isEqualTo(32 * MIB);
        assertThat(figure(async, "allocated_bytes.all.peak")).isEqualTo(20 * MIB);
        assertThat(figure(async, "pool.trims")).isOne();
        assertThat(figure(async, "pool.trimmed_bytes")).isEqualTo(96 * MIB);
        async.resetTotals(DEVICE);
        assertThat(figure(async, "pool.trims")).isZero();
        Allocator keepsNothing = memory.open("async:release_threshold=zero");
        memory.free(keepsNothing.allocate(MIB, DEVICE, stream), stream);
        assertThat(figure(keepsNothing, "pool.release_threshold_bytes")).isZero();
        assertThat(figure(async, "pool.trimmed_bytes")).isZero();
    }
}
