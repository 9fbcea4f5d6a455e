package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.TrimResult.Reason;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What trimming gives back and what it says of the rest, on a simulated GPU.
class CacheTrimTests extends PoolFixture {
    private static final TrimMode NOW = TrimMode.WITHOUT_WAITING;
    /// Long enough that nothing but waiting gets past it.
    private static final long WORK_BYTES = 1L << 30;

    private final Allocator caching = memory.setCurrent("caching");
    private final long work = gpu.memory().allocate(DEVICE, WORK_BYTES);

    CacheTrimTests() {
        super(4L << 30);
    }

    @AfterEach
    void noWorkIsLeft() {
        gpu.devices().synchronize(DEVICE);
        gpu.memory().free(DEVICE, work);
    }

    @Test
    void whatIsIdleGoesAndWhatIsInUseStays() {
        long live = allocate(8 * MIB);
        free(allocate(32 * MIB));
        TrimResult result = caching.trim(DEVICE, 0, NOW);
        assertThat(result.returnedBytes()).isEqualTo(32 * MIB);
        assertThat(result.left()).containsExactly(new TrimResult.Left(Reason.IN_USE, stream(), 8 * MIB));
        free(live);
    }

    @Test
    void anIdleBlockBesideOneInUseKeepsItsPage() {
        long live = allocate(MIB);
        free(allocate(MIB / 2));
        TrimResult result = caching.trim(DEVICE, 0, NOW);
        assertThat(result.returnedBytes()).isZero();
        assertThat(result.leftBytes(Reason.IN_USE)).isEqualTo(MIB);
        assertThat(result.leftBytes(Reason.SHARED_WITH_USED)).isEqualTo(MIB);
        free(live);
    }

    @Test
    void whatRunningWorkMayUseStaysUnlessItIsWaitedFor() {
        long block = allocate(16 * MIB);
        keepBusy(stream);
        free(block);
        TrimResult first = caching.trim(DEVICE, 0, NOW);
        assertThat(first.left()).containsExactly(new TrimResult.Left(Reason.IN_FLIGHT, stream(), 16 * MIB));
        TrimResult second = caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
        assertThat(second).isEqualTo(new TrimResult(16 * MIB, OptionalLong.of(0), List.of()));
    }

    @Test
    void aBlockThatAnotherStreamUsedLastWaitsForThatStream() {
        long other = gpu.streams().create(DEVICE);
        long block = allocate(16 * MIB);
        keepBusy(other);
        memory.free(block, other);
        assertThat(caching.trim(DEVICE, 0, NOW).leftBytes(Reason.USED_BY_OTHER_STREAM))
                .isEqualTo(16 * MIB);
        assertThat(caching.trim(DEVICE, 0, TrimMode.SYNCHRONIZE).returnedBytes())
                .isEqualTo(16 * MIB);
    }

    @Test
    void whatIsToBeKeptIsKept() {
        free(allocate(32 * MIB));
        TrimResult result = caching.trim(DEVICE, 20 * MIB, NOW);
        assertThat(result.reservedBytes().orElseThrow()).isBetween(18 * MIB, 20 * MIB);
        assertThat(result.leftBytes(Reason.KEPT)).isEqualTo(32 * MIB - result.returnedBytes());
    }

    @Test
    void allAllocatorsAreTrimmedToOneTarget() {
        try (Allocator other = memory.open("caching:expandable_segments=false")) {
            free(allocate(32 * MIB));
            memory.free(other.allocate(32 * MIB, DEVICE, stream), stream);
            TrimResult result = memory.trim(DEVICE, 40 * MIB, NOW);
            assertThat(result.returnedBytes()).isBetween(24 * MIB, 32 * MIB);
            assertThat(memory.trim(DEVICE, 0, NOW).reservedBytes()).hasValue(0);
        }
    }

    @Test
    void anAllocatorThatCannotSayWhyIsTrimmedToo() {
        try (Allocator direct = memory.open("direct")) {
            TrimResult result = direct.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThat(result.returnedBytes()).isZero();
            assertThat(result.left()).isEmpty();
        }
    }

    @Test
    void aTargetBelowZeroIsRefused() {
        assertThatThrownBy(() -> caching.trim(DEVICE, -1, NOW)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> memory.trim(DEVICE, -1, NOW)).isInstanceOf(IllegalArgumentException.class);
    }

    private OptionalLong stream() {
        return OptionalLong.of(stream);
    }

    private void keepBusy(long busy) {
        for (int i = 0; i < 100; i++) {
            gpu.copies().fillBytes(DEVICE, work, (byte) i, WORK_BYTES, busy);
        }
    }
}
