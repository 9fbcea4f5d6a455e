package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Whose pool serves what, whichever way its scope was opened.
class PoolScopeTests extends PoolFixture {
    private final Functions functions = new Functions();
    private final MemoryPool pool = functions.pool();

    PoolScopeTests() {
        super(512 * MIB);
    }

    /// A block of 10 MiB is a segment of 10 MiB here, as it is one of 20 MiB in PyTorch's test.
    @Test
    void nestedPoolsServeTheInnermostScope() {
        Functions second = new Functions();
        Functions third = new Functions();
        MemoryPool middle = second.pool();
        MemoryPool inner = third.pool();
        List<Long> blocks = new ArrayList<>();
        try (Scope _ = pool.enter()) {
            blocks.add(allocate(10 * MIB));
            try (Scope _ = middle.enter()) {
                blocks.add(allocate(10 * MIB));
                try (Scope _ = inner.enter()) {
                    blocks.add(allocate(10 * MIB));
                }
                blocks.add(allocate(10 * MIB));
            }
            blocks.add(allocate(10 * MIB));
        }
        assertThat(functions.made).hasSize(2);
        assertThat(second.made).hasSize(2);
        assertThat(third.made).hasSize(1);
        blocks.forEach(this::free);
    }

    /// PyTorch gives both threads segments of 2 MiB; so does this.
    @Test
    void aScopeOfOneThreadDoesNotServeAnother() throws InterruptedException {
        try (Scope _ = pool.enter()) {
            long[] block = new long[1];
            Thread thread = Thread.ofPlatform().start(() -> block[0] = allocate(MIB));
            thread.join();
            assertThat(pool.statistics(DEVICE).allocations()).isZero();
            assertThat(memory.current(0).statistics(DEVICE).liveBlocks()).isOne();
            assertThat(memory.current(0).reservedBytes(DEVICE)).hasValue(2 * MIB);
            free(block[0]);
        }
    }

    @Test
    void trimmingTheCurrentAllocatorInAScopeKeepsThePoolsSegment() {
        free(allocate(MIB));
        try (Scope _ = pool.enter()) {
            free(allocate(MIB));
            assertThat(memory.current(0)
                            .trim(DEVICE, 0, TrimMode.WITHOUT_WAITING)
                            .returnedBytes())
                    .isEqualTo(2 * MIB);
            assertThat(functions.deleted).isEmpty();
            assertThat(pool.reservedBytes(DEVICE)).hasValue(2 * MIB);
        }
    }

    @Test
    void workInAScopeUsesThePoolMeanwhile() {
        int uses = pool.call(ScopeOptions.all(), () -> {
            free(allocate(MIB));
            return pool.useCount();
        });
        assertThat(uses).isEqualTo(2);
        assertThat(pool.useCount()).isOne();
        assertThat(pool.statistics(DEVICE).allocations()).isOne();
        pool.close();
        assertThatIllegalStateException().isThrownBy(() -> pool.run(ScopeOptions.all(), () -> {}));
    }

    @Test
    void aScopeOfOneStreamServesThatAlone() {
        long other = gpu.streams().create(DEVICE);
        try (Scope _ = pool.enter(ScopeOptions.all().stream(DEVICE, other))) {
            free(allocate(MIB));
            assertThat(pool.statistics(DEVICE).allocations()).isZero();
            memory.free(memory.allocate(MIB, DEVICE, other), other);
            assertThat(pool.statistics(DEVICE).allocations()).isOne();
        }
    }

    @Test
    void aPoolCanBeBegunAndEndedWithoutLexicalForm() {
        memory.pools().begin(pool, DEVICE);
        long block = allocate(MIB);
        memory.pools().end(pool, DEVICE);
        free(allocate(MIB));
        assertThat(pool.statistics(DEVICE).allocations()).isOne();
        assertThat(pool.useCount()).as("until it is released").isEqualTo(2);
        pool.close();
        assertThat(pool.useCount()).isOne();
        assertThat(memory.pools().all()).containsExactly(pool);
        free(block);
        assertThat(functions.deleted).isEmpty();
        memory.pools().release(pool.id());
        assertThat(functions.deleted).isEqualTo(functions.made);
        assertThatIllegalArgumentException().isThrownBy(() -> memory.pools().release(pool.id()));
    }

    @Test
    void theInnermostWinsWhicheverFormOpenedIt() {
        MemoryPool inner = memory.pools().open("caching");
        memory.pools().begin(pool, DEVICE);
        try (Scope _ = inner.enter()) {
            free(allocate(MIB));
            memory.pools().begin(pool, DEVICE);
            free(allocate(MIB));
            memory.pools().end(pool, DEVICE);
            free(allocate(MIB));
        }
        free(allocate(MIB));
        memory.pools().end(pool, DEVICE);
        assertThat(inner.statistics(DEVICE).allocations()).isEqualTo(2);
        assertThat(pool.statistics(DEVICE).allocations()).isEqualTo(2);
        memory.pools().release(pool.id());
        memory.pools().release(pool.id());
        assertThat(pool.useCount()).isOne();
    }

    @Test
    void endingOutOfOrderIsAnErrorAndChangesNothing() {
        MemoryPool inner = memory.pools().open("caching");
        memory.pools().begin(pool, DEVICE);
        try (Scope _ = inner.enter()) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> memory.pools().end(pool, DEVICE))
                    .withMessageContaining("not the innermost");
            free(allocate(MIB));
            assertThat(inner.statistics(DEVICE).allocations()).isOne();
        }
        memory.pools().end(pool, DEVICE);
        memory.pools().release(pool.id());
    }

    @Test
    void endingWhatWasNotBegunHereIsAnError() throws InterruptedException {
        assertThatIllegalStateException()
                .isThrownBy(() -> memory.pools().end(pool, DEVICE))
                .withMessageContaining("was begun");
        memory.pools().begin(pool, DEVICE);
        List<Throwable> failures = new ArrayList<>();
        Thread thread = Thread.ofPlatform().start(() -> {
            try {
                memory.pools().end(pool, DEVICE);
            } catch (IllegalStateException failure) {
                failures.add(failure);
            }
        });
        thread.join();
        assertThat(failures).hasSize(1);
        assertThatIllegalStateException().isThrownBy(() -> memory.pools().release(pool.id()));
        memory.pools().end(pool, DEVICE);
        memory.pools().release(pool.id());
    }

    @Test
    void aDeviceThatIsNotThereTakesNoUse() {
        assertThatThrownBy(() -> memory.pools().begin(pool, 7)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> pool.enter(ScopeOptions.all().device(7)))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(pool.useCount()).isOne();
    }

    @Test
    void aPoolOfOtherDeviceMemoryIsRefused() {
        try (DeviceMemory other =
                DeviceMemory.builder(gpu).catalog(memory.currents().catalog()).open()) {
            assertThatIllegalArgumentException().isThrownBy(() -> other.pools().begin(pool, DEVICE));
            assertThatIllegalArgumentException().isThrownBy(() -> other.pools().end(pool, DEVICE));
        }
    }
}
