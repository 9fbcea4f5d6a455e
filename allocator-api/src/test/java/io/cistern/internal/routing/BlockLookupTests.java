package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.MemoryAsleepException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/// What the router says about live blocks and idle memory that another route lends.
final class BlockLookupTests {
    private static final long BASE = 0x7f00_0000_0000L;

    private final Router router = new Router();
    private final Lender lender = new Lender();
    private final Route route = router.routes().open("lender", 3, lender, null, () -> {});

    /// Has one idle block.
    private static final class Lender implements DeviceAllocator, MemoryReclaim {
        private final Ledger ledger = new Ledger(BASE);
        private Availability available = Availability.yes();
        private long idle = BASE + (1 << 30);
        private RuntimeException failure = new DeviceOutOfMemoryException(1, 3, "nothing left");
        private boolean fails;

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (fails) {
                throw failure;
            }
            return ledger.allocate(byteSize, device, stream);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            ledger.free(address, byteSize, device, stream);
        }

        @Override
        public Availability canLend() {
            return available;
        }

        @Override
        public long tryAllocate(long byteSize, int device, long stream) {
            long given = idle;
            idle = 0;
            return given;
        }

        @Override
        public <T> Optional<T> extension(Class<T> type) {
            return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
        }
    }

    @Test
    void aLiveBlockIsKnownByItsAddress() {
        long block = router.allocate(route, 100, 0);
        assertThat(router.isLive(block)).isTrue();
        assertThat(router.isLive(block + 256)).isFalse();
        assertThat(router.isLive(1)).isFalse();
        assertThat(router.deviceOf(block)).isEqualTo(3);
        assertThat(router.<String>ofLive(block, (address, byteSize, of) -> address - BASE + " " + byteSize + " " + of))
                .isEqualTo("0 100 lender");
        assertThat(router.<String>ofLive(block + 256, (_, _, _) -> "")).isNull();
        assertThat(router.<String>ofLive(-1, (_, _, _) -> "")).isNull();
        router.free(block, 0);
        assertThat(router.isLive(block)).isFalse();
        assertThatExceptionOfType(UnknownAddressException.class).isThrownBy(() -> router.deviceOf(block));
    }

    @Test
    void aBlockOfASleepingAllocatorIsNotToBeUsed() {
        long block = router.allocate(route, 100, 0);
        router.requireAwake(block);
        router.routes().sleep(route);
        assertThatExceptionOfType(MemoryAsleepException.class).isThrownBy(() -> router.requireAwake(block));
        router.requireAwake(block + 256);
        router.routes().wake(route);
        router.requireAwake(block);
    }

    @Test
    void idleMemoryIsLentOnce() {
        long lent = router.lend(route, 100, 0);
        assertThat(lent).isEqualTo(BASE + (1 << 30));
        assertThat(router.routeOfBlock(lent)).isSameAs(route);
        assertThat(router.lend(route, 100, 0)).isZero();
        assertThat(route.statistics().allocations()).isEqualTo(1);
        router.free(lent, 0);
        assertThat(lender.ledger.freed).hasSize(1);
    }

    @Test
    void anAllocatorLendsOnlyWhatItCan() {
        Route without = router.routes().open("ledger", 3, new Ledger(BASE), null, () -> {});
        assertThat(router.lend(without, 100, 0)).isZero();
        assertThat(router.lend(route, OwnerTable.MAX_SIZE + 1, 0)).isZero();
        lender.available = Availability.no("busy");
        assertThat(router.lend(route, 100, 0)).isZero();
        lender.available = Availability.yes();
        router.routes().sleep(route);
        assertThat(router.lend(route, 100, 0)).isZero();
        router.routes().wake(route);
        assertThat(router.lend(route, OwnerTable.MAX_SIZE, 0)).isNotZero();
        lender.idle = BASE;
        router.routes().close(route);
        assertThat(router.lend(route, 100, 0)).as("closed").isZero();
    }

    @Test
    void aRefusalSaysWhatIsLive() {
        router.allocate(route, 100, 0);
        router.free(router.allocate(route, 200, 0), 0);
        lender.fails = true;
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(route, 500, 0))
                .withMessageContaining("allocator lender has 100 bytes requested in 1 live block; nothing left");
    }

    @Test
    void anyOtherFailureSaysWhoWasAsked() {
        lender.fails = true;
        lender.failure = new IllegalStateException("broken");
        Throwable failure = catchThrowable(() -> router.allocate(route, 500, 0));
        assertThat(failure).isSameAs(lender.failure);
        assertThat(failure.getSuppressed())
                .singleElement()
                .extracting(Throwable::getMessage)
                .isEqualTo("allocator lender was asked for 500 bytes on device 3");
    }
}
