package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.EnumSet;
import org.junit.jupiter.api.Test;

/// What pools lend to allocations outside pools, on a device of 80 MiB.
class PoolLendingTests extends PoolFixture {
    PoolLendingTests() {
        // Else what a pool has idle would go back to the driver for whoever runs out.
        super(80 * MIB, EnumSet.complementOf(EnumSet.of(ReclaimStep.OTHER_ALLOCATORS)));
    }

    @Test
    void aLendingPoolServesOthersWhenTheyRunOut() {
        MemoryPool keeping = memory.pools().open("linear");
        MemoryPool lending = builder().spec("linear").lendsToOthers(true).open();
        long kept = keeping.allocate(40 * MIB, DEVICE, stream);
        long lent = lending.allocate(40 * MIB, DEVICE, stream);
        assertOutOfMemory(40 * MIB);
        free(kept, lent);

        long borrowed = allocate(30 * MIB);
        assertThat(borrowed).isEqualTo(lent);
        assertOutOfMemory(30 * MIB);
        assertThat(lending.statistics(DEVICE).requestedBytes()).isEqualTo(30 * MIB);
        assertThat(memory.current(0).statistics(DEVICE).liveBlocks()).isZero();

        free(borrowed);
        long back = lending.allocate(40 * MIB, DEVICE, stream);
        assertThat(back).isEqualTo(lent);
        free(back);
    }

    @Test
    void everyFormOfAllocationBorrows() throws InterruptedException {
        MemoryPool lending = builder().lendsToOthers(true).open();
        free(lending.allocate(60 * MIB, DEVICE, stream));

        free(memory.current(0).allocate(40 * MIB, DEVICE, stream));
        try (DeviceBuffer buffer = DeviceBuffer.allocate(memory, 40 * MIB, DEVICE, stream)) {
            assertThat(lending.liveBlockCount()).isOne();
            assertThat(buffer.address()).isNotZero();
        }
        Allocator other = memory.open("caching");
        try (Scope _ = other.enter(ScopeOptions.all().stream(DEVICE, stream))) {
            free(allocate(40 * MIB));
        }
        other.run(ScopeOptions.all(), () -> free(allocate(40 * MIB)));
        Thread.ofVirtual().start(() -> free(allocate(40 * MIB))).join();
        assertThat(lending.statistics(DEVICE).allocations()).isEqualTo(6);
        assertThat(lending.liveBlockCount()).isZero();
    }

    @Test
    void whatIsLentIsChargedToTheScopeThatAsked() {
        MemoryPool lending = builder().lendsToOthers(true).open();
        free(lending.allocate(60 * MIB, DEVICE, stream));
        MemoryLimit limit = MemoryLimit.of("request", 45 * MIB);
        long[] borrowed = new long[1];
        memory.current(0).run(ScopeOptions.all().limit(limit), () -> {
            borrowed[0] = allocate(40 * MIB);
            assertThat(limit.usedBytes()).isEqualTo(40 * MIB);
            assertOutOfMemory(6 * MIB);
        });
        assertThat(lending.liveBlockCount()).isOne();
        free(borrowed);
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void lendingMakesNoMemory() {
        MemoryPool lending = builder().lendsToOthers(true).open();
        long before = allocate(70 * MIB);
        assertOutOfMemory(20 * MIB);
        assertThat(lending.reservedBytes(DEVICE)).hasValue(0);
        free(before);
    }

    @Test
    void aPoolDoesNotBorrow() {
        MemoryPool lending = builder().lendsToOthers(true).open();
        free(lending.allocate(60 * MIB, DEVICE, stream));
        try (MemoryPool other = memory.pools().open("caching");
                Scope _ = other.enter()) {
            assertOutOfMemory(40 * MIB);
            assertThatThrownBy(() -> other.allocate(40 * MIB, DEVICE, stream))
                    .isInstanceOf(DeviceOutOfMemoryException.class);
        }
        free(allocate(40 * MIB));
        assertThat(lending.statistics(DEVICE).allocations()).isEqualTo(2);
    }

    @Test
    void idleBlocksOfAnotherStreamAreNotLent() {
        long other = gpu.streams().create(DEVICE);
        MemoryPool lending = builder().lendsToOthers(true).open();
        memory.free(lending.allocate(60 * MIB, DEVICE, other), other);
        assertOutOfMemory(40 * MIB);
    }

    @Test
    void aLimitHoldsForWhatIsLentToo() {
        MemoryPool lending = builder()
                .spec("caching:expandable_segments=false")
                .lendsToOthers(true)
                .limitBytes(40 * MIB)
                .open();
        free(lending.allocate(20 * MIB, DEVICE, stream), lending.allocate(20 * MIB, DEVICE, stream));
        free(lending.allocate(40 * MIB, DEVICE, stream)); // in a segment of its own: the pool holds 80 MiB now
        long borrowed = allocate(30 * MIB);
        assertOutOfMemory(20 * MIB);
        assertThat(lending.statistics(DEVICE).requestedBytes()).isEqualTo(30 * MIB);
        free(borrowed);
        free(allocate(20 * MIB));
    }

    @Test
    void aDeletedPoolIsNotUsedOnOutOfMemory() {
        for (int i = 0; i < 10; i++) {
            try (MemoryPool deleted =
                    builder().spec("linear").lendsToOthers(true).open()) {
                free(deleted.allocate(80 * MIB, DEVICE, stream));
            }
        }
        MemoryPool alive = builder().lendsToOthers(true).open();
        free(alive.allocate(80 * MIB, DEVICE, stream));
        long first = allocate(40 * MIB);
        long second = allocate(40 * MIB);
        assertThat(alive.statistics(DEVICE).liveBlocks()).isEqualTo(2);
        free(first, second);
    }

    @Test
    void aPoolThatIsClosedInAScopeServesThatAndLendsNoMore() {
        MemoryPool lending = builder().lendsToOthers(true).open();
        long block;
        try (Scope _ = lending.enter()) {
            lending.close();
            block = allocate(60 * MIB);
            free(block);
            // The scope's thread is in the pool; another one is not.
            assertThat(onAnotherThread(() -> assertOutOfMemory(40 * MIB))).isTrue();
        }
        assertThat(lending.isDrained()).isTrue();
    }

    private static boolean onAnotherThread(Runnable body) {
        boolean[] ended = new boolean[1];
        Thread thread = Thread.ofPlatform().start(() -> {
            body.run();
            ended[0] = true;
        });
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return ended[0];
    }

    private void assertOutOfMemory(long byteSize) {
        assertThatThrownBy(() -> allocate(byteSize)).isInstanceOf(DeviceOutOfMemoryException.class);
    }
}
