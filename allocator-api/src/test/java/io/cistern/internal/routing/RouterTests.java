package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.DeviceAllocator;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RouterTests {
    private static final long BASE = 0x7f00_0000_0000L;

    private final Router router = new Router();

    private Route open(DeviceAllocator allocator) {
        return open(allocator, null, () -> {});
    }

    private Route open(DeviceAllocator allocator, Budgets budget, Runnable whenDrained) {
        return router.routes().open("ledger", 3, allocator, budget, whenDrained);
    }

    @Test
    void freesGoBackToTheAllocatorThatMadeThem() {
        Ledger first = new Ledger(BASE);
        Ledger second = new Ledger(BASE + (1L << 40));
        long fromFirst = router.allocate(open(first), 1000, 7);
        long fromSecond = router.allocate(open(second), 2000, 8);

        router.free(fromFirst, 9);

        assertThat(first.freed).containsExactly(new Ledger.Freed(fromFirst, 1000, 3, 9));
        assertThat(second.freed).isEmpty();
        router.free(fromSecond, 8);
        assertThat(second.freed).containsExactly(new Ledger.Freed(fromSecond, 2000, 3, 8));
    }

    @Test
    void twoAllocatorsMayShareAPageOfAddresses() {
        Ledger even = new Ledger(BASE, 512);
        Ledger odd = new Ledger(BASE + 256, 512);
        Route evenRoute = open(even);
        Route oddRoute = open(odd);
        long[] blocks = new long[64];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = router.allocate(i % 2 == 0 ? evenRoute : oddRoute, 100, 0);
        }
        for (long block : blocks) {
            router.free(block, 0);
        }

        assertThat(even.freed).hasSize(32).allMatch(freed -> freed.address() % 512 == 0);
        assertThat(odd.freed).hasSize(32).allMatch(freed -> freed.address() % 512 == 256);
    }

    @Test
    void zeroBytesAreAddressZeroWhichMayBeFreed() {
        Ledger ledger = new Ledger(BASE);
        assertThat(router.allocate(open(ledger), 0, 0)).isZero();
        router.free(0, 0);
        assertThat(ledger.freed).isEmpty();
    }

    @Test
    void negativeSizesAreRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> router.allocate(open(new Ledger(BASE)), -1, 0))
                .withMessage("byteSize is negative: -1");
    }

    @Test
    void sizesBeyondTheAddressSpaceAreOutOfMemoryAtOnce() {
        Ledger ledger = new Ledger(BASE);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(open(ledger), Long.MAX_VALUE, 0))
                .satisfies(failure -> assertThat(failure.byteSize()).isEqualTo(Long.MAX_VALUE));
        assertThat(ledger.allocate(1, 0, 0)).isEqualTo(BASE);
    }

    @Test
    void aSecondFreeOfAnAddressIsRefused() {
        Ledger ledger = new Ledger(BASE);
        long block = router.allocate(open(ledger), 4096, 0);
        router.free(block, 0);

        assertThatExceptionOfType(UnknownAddressException.class)
                .isThrownBy(() -> router.free(block, 0))
                .satisfies(failure -> assertThat(failure.address()).isEqualTo(block));
        assertThat(ledger.freed).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(longs = {BASE + 256, BASE + 4096, BASE + 1, BASE - 256, 1, -256, Long.MIN_VALUE, 1L << 49})
    void addressesThatBeginNoBlockAreRefused(long address) {
        router.allocate(open(new Ledger(BASE)), 1 << 20, 0);
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> router.free(address, 0));
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1, BASE + 128, 1L << 49, -256})
    void illegalAddressesOfAPlugInBreakItsContract(long address) {
        Route route = open(returning(_ -> address));
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> router.allocate(route, 100, 0))
                .withMessageContaining("ledger")
                .withMessageContaining("0x" + Long.toHexString(address));
        assertThat(route.statistics().allocations()).isZero();
    }

    @Test
    void anAddressThatIsStillLiveIsAContractBroken() {
        Route route = open(returning(_ -> BASE));
        long block = router.allocate(route, 100, 0);
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> router.allocate(route, 100, 0))
                .withMessageContaining("where a live block already begins");
        router.free(block, 0);
        assertThat(router.allocate(route, 100, 0)).isEqualTo(BASE);
    }

    @Test
    void anAddressInsideALiveBlockIsAContractBroken() {
        router.allocate(open(returning(_ -> BASE)), 1 << 20, 0);
        Route inside = open(returning(_ -> BASE + 256));
        assertThatExceptionOfType(AllocatorContractException.class)
                .isThrownBy(() -> router.allocate(inside, 1 << 20, 0))
                .withMessageContaining("which lies in the live block that begins at 0x" + Long.toHexString(BASE)
                        + " of 1048576 bytes");
    }

    @Test
    void aFailedAllocationLeavesNoCountAndGivesTheLimitBack() {
        Budgets budget = Budgets.of(null, new Budget("device 3", 1000, null));
        Route failing = open(
                returning(_ -> {
                    throw new DeviceOutOfMemoryException(512, 3, "nothing left");
                }),
                budget,
                () -> {});
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(failing, 500, 0))
                .withMessageContaining("500 bytes requested")
                .withMessageContaining("nothing left")
                .satisfies(failure -> assertThat(failure.byteSize()).isEqualTo(500));

        assertThat(failing.statistics()).isEqualTo(new RouteStatistics(0, 0, 0, 0, 0));
        Route working = open(new Ledger(BASE), budget, () -> {});
        router.free(router.allocate(working, 1000, 0), 0);
    }

    @Test
    void whatAPlugInThrowsReachesTheCaller() {
        IllegalCallerException thrown = new IllegalCallerException("no");
        Route route = open(returning(_ -> {
            throw thrown;
        }));
        assertThatExceptionOfType(IllegalCallerException.class)
                .isThrownBy(() -> router.allocate(route, 1, 0))
                .isSameAs(thrown);
    }

    @Test
    void aLimitIsExact() {
        Route route = open(new Ledger(BASE), Budgets.of(null, new Budget("device 3", 1000, null)), () -> {});
        long block = router.allocate(route, 600, 0);
        router.allocate(route, 400, 0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(route, 1, 0))
                .withMessageContaining("limit of 1000 bytes, 1000 of them in use");
        router.free(block, 0);
        router.allocate(route, 600, 0);
    }

    @Test
    void anAllocatorThatSleepsRefusesAllocationsUntilItWakes() {
        Ledger ledger = new Ledger(BASE);
        Route route = open(ledger);
        long before = router.allocate(route, 1000, 7);
        router.routes().sleep(route);
        Route sibling = router.routes().openSibling(route, ledger, null, () -> {});
        for (Route each : List.of(route, sibling)) {
            assertThatExceptionOfType(MemoryAsleepException.class).isThrownBy(() -> router.allocate(each, 1000, 7));
        }
        router.free(before, 7);
        assertThat(ledger.freed).hasSize(1);

        router.routes().wake(route);
        for (Route each : List.of(route, sibling)) {
            router.free(router.allocate(each, 1000, 7), 7);
        }
        assertThat(ledger.freed).hasSize(3);
    }

    @Test
    void aClosedAllocatorRefusesAllocations() {
        Route route = open(new Ledger(BASE));
        router.routes().close(route);
        assertThat(router.allocate(route, 1, 0)).isEqualTo(Router.REFUSED);
    }

    @Test
    void aClosedAllocatorDrainsWithItsLastBlock() {
        AtomicInteger drained = new AtomicInteger();
        Ledger ledger = new Ledger(BASE);
        Route route = open(ledger, null, drained::incrementAndGet);
        long small = router.allocate(route, 100, 0);
        long middle = router.allocate(route, 100_000, 0);
        long large = router.allocate(route, 10_000_000, 0);

        router.routes().close(route);
        router.free(small, 0);
        router.free(large, 0);
        assertThat(drained).hasValue(0);
        router.free(middle, 0);

        assertThat(drained).hasValue(1);
        assertThat(ledger.freed).hasSize(3);
    }

    @Test
    void anAllocatorWithoutBlocksDrainsAtOnce() {
        AtomicInteger drained = new AtomicInteger();
        Route route = open(new Ledger(BASE), null, drained::incrementAndGet);
        router.free(router.allocate(route, 100, 0), 0);
        router.routes().close(route);
        assertThat(drained).hasValue(1);
    }

    @Test
    void aFreeThatThrowsIsCountedAllTheSame() {
        Route route = open(new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return BASE;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                throw new IllegalCallerException("broken");
            }
        });
        long block = router.allocate(route, 100, 0);
        assertThatExceptionOfType(IllegalCallerException.class).isThrownBy(() -> router.free(block, 0));
        assertThat(route.statistics()).isEqualTo(new RouteStatistics(1, 1, 0, 100, 100));
    }

    private static DeviceAllocator returning(LongUnaryOperator addressOf) {
        return new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return addressOf.applyAsLong(byteSize);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        };
    }

    /// To mark what is alive is to look at the whole owner table, here at 1.5 million records, for which a
    /// millisecond is not enough.
    @Tag("long") // compares times, which a busy machine spoils
    @Test
    void anIdleRouteClosesAsFastBesideManyBlocks() {
        long alone = leastNanosOfClosing();
        Route busy = open(new Ledger(BASE, 1 << 17));
        for (int i = 0; i < 3000; i++) {
            router.allocate(busy, 100, 0);
        }

        assertThat(leastNanosOfClosing()).isLessThan(alone + 500_000);
    }

    private long leastNanosOfClosing() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 200; i++) {
            Route idle = open(new Ledger(BASE + (1L << 40)));
            long begun = System.nanoTime();
            router.routes().close(idle);
            least = Math.min(least, System.nanoTime() - begun);
        }
        return least;
    }
}
