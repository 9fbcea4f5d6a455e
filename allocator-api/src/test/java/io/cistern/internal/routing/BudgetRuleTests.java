package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What a limit counts and refuses, on one thread; [BudgetTests] has many.
final class BudgetRuleTests {
    private static final long BASE = 0x7f00_0000_0000L;
    private static final long MIB = 1L << 20;

    private final Router router = new Router();
    private final AtomicLong nextAddress = new AtomicLong(BASE);

    private Route route(String name, @Nullable Budget budget) {
        return router.routes().open(name, 0, new Keeping(0), Budgets.of(null, budget), () -> {});
    }

    /// Hands out addresses, and has idle memory that it gives back when asked.
    private final class Keeping implements DeviceAllocator {
        private long reserved;
        private int trims;

        Keeping(long reserved) {
            this.reserved = reserved;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            return nextAddress.getAndAdd(1L << 32);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reservedBytes(int device) {
            return OptionalLong.of(reserved);
        }

        @Override
        public long trim(int device, long keepBytes) {
            trims++;
            long given = Math.max(0, reserved - keepBytes);
            reserved -= given;
            return given;
        }
    }

    private void assertRefused(Route route, long byteSize, @Nullable String why) {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> router.allocate(route, byteSize, 0))
                .withMessageContaining(why);
    }

    /// Small limits, where nothing is leased, and large ones.
    @ParameterizedTest
    @CsvSource({"1000", "67108864", "1073741824"})
    void aLimitGivesEachByteAndNoMore(long limit) {
        Budget budget = new Budget("all", limit, null);
        Route route = route("one", budget);
        long first = router.allocate(route, 100, 0);
        assertThat(budget.usedBytes()).isEqualTo(100);
        assertRefused(route, limit - 99, "all: limit of " + ByteSizes.exact(limit) + ", 100 of them in use");
        long rest = router.allocate(route, limit - 100, 0);
        assertThat(budget.usedBytes()).isEqualTo(limit);
        assertRefused(route, 1, limit + " of them in use");
        router.free(first, 0);
        assertThat(budget.usedBytes()).isEqualTo(limit - 100);
        router.free(router.allocate(route, 100, 0), 0);
        router.free(rest, 0);
        assertThat(budget.usedBytes()).isZero();
        router.free(router.allocate(route, limit, 0), 0);
    }

    @Test
    void aLoweredLimitHoldsForWhatAThreadHadInAdvance() {
        Budget budget = new Budget("all", 1024 * MIB, null);
        Route route = route("one", budget);
        long block = router.allocate(route, 1000, 0);
        assertThat(budget.room()).as("some bytes were taken in advance").isLessThan(1024 * MIB - 1000);
        budget.setLimitBytes(2000);
        assertThat(budget.limitBytes()).isEqualTo(2000);
        assertThat(budget.room()).isEqualTo(1000);
        assertRefused(route, 1001, "limit of 2000 bytes, 1000 of them in use");
        router.free(router.allocate(route, 1000, 0), 0);
        budget.setLimitBytes(500);
        assertRefused(route, 1, "limit of 500 bytes, 1000 of them in use");
        budget.setLimitBytes(1001);
        router.free(router.allocate(route, 1, 0), 0);
        router.free(block, 0);
    }

    @Test
    void aLimitThatWasLiftedRefusesNothing() {
        Budget budget = new Budget("all", 1000, null);
        Route route = route("one", budget);
        budget.setLimitBytes(Budget.UNLIMITED);
        long block = router.allocate(route, 1L << 31, 0);
        assertThat(budget).hasToString("all: no limit, 2147483648 bytes (2.00 GiB) in use");
        router.free(block, 0);
    }

    @Test
    void aRefusalAboveLeavesNothingCharged() {
        Budget whole = new Budget("whole", 10 * MIB, null);
        Budget part = new Budget("part", 20 * MIB, whole);
        Route route = route("one", part);
        long block = router.allocate(route, 4 * MIB, 0);
        assertRefused(route, 7 * MIB, "whole: limit of");
        assertThat(part.usedBytes()).isEqualTo(4 * MIB);
        assertThat(whole.usedBytes()).isEqualTo(4 * MIB);
        router.free(router.allocate(route, 6 * MIB, 0), 0);
        router.free(block, 0);
        assertThat(part.room()).isEqualTo(20 * MIB - route.leasedCredit());
    }

    @Test
    void whatOneRouteHasInAdvanceIsNotLostToAnother() {
        Budget budget = new Budget("all", 1024 * MIB, null);
        Route one = route("one", budget);
        Route other = route("other", budget);
        long block = router.allocate(one, 1000, 0);
        assertThat(one.leasedCredit()).isPositive();
        long rest = router.allocate(other, 1024 * MIB - 1000, 0);
        assertThat(one.leasedCredit()).isZero();
        assertRefused(other, 1, "all: limit of");
        router.free(rest, 0);
        router.free(block, 0);
    }

    /// A thread keeps a 64th of the limit at most, whatever it frees.
    @Test
    void aThreadKeepsLittleOfALimit() {
        Budget budget = new Budget("all", 64 * MIB, null);
        Route route = route("one", budget);
        long[] blocks = new long[40];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = router.allocate(route, MIB, 0);
        }
        for (long block : blocks) {
            router.free(block, 0);
            assertThat(route.leasedCredit()).isBetween(0L, MIB);
        }
    }

    @Test
    void blocksOfAFormerRouteCountUntilTheyAreFreed() {
        Budget budget = new Budget("all", 1000, null);
        Route former = router.routes().open("former", 0, new Keeping(0), null, () -> {});
        long block = router.allocate(former, 600, 0);
        budget.count(former);
        budget.count(former);
        assertThat(budget.usedBytes()).isEqualTo(600);
        assertThat(budget.room()).isEqualTo(400);
        Route route = route("one", budget);
        assertRefused(route, 401, "600 of them in use");
        router.free(router.allocate(route, 400, 0), 0);
        router.free(block, 0);
        assertThat(budget.usedBytes()).isZero();
        router.free(router.allocate(route, 1000, 0), 0);
    }

    @Test
    void aRouteThatServesAgainCountsOnce() {
        Budget budget = new Budget("all", 1000, null);
        Route route = route("one", budget);
        long block = router.allocate(route, 600, 0);
        budget.uncharge(route);
        budget.count(route);
        assertThat(budget.room()).as("twice").isNegative();
        budget.charge(route);
        assertThat(budget.usedBytes()).isEqualTo(600);
        router.free(block, 0);
    }

    @ParameterizedTest(name = "{0} are kept: {1}")
    @CsvSource({"200, 160", "160, 160", "100, 100", "1, 1", "0, 0"})
    void aTrimLeavesAsMuchAsIsToBeKept(long keepBytes, long left) {
        Budget budget = new Budget("all", 1000, null);
        Keeping[] allocators = {new Keeping(100), new Keeping(60), new Keeping(0)};
        for (int i = 0; i < allocators.length; i++) {
            Route route = router.routes()
                    .open("route" + i, 0, allocators[i], i == 1 ? null : Budgets.of(null, budget), () -> {});
            if (i == 1) {
                budget.count(route);
            }
        }
        budget.trim(keepBytes);
        assertThat(allocators[0].reserved + allocators[1].reserved).isEqualTo(left);
        assertThat(allocators[0].trims + allocators[1].trims)
                .as("each trim gives memory back")
                .isEqualTo(left == 160 ? 0 : left >= 100 ? 1 : 2);
        assertThat(allocators[2].trims).isZero();
    }

    @Test
    void anAllocatorThatTrimsInItsOwnWayIsAskedNotToWait() {
        List<String> asked = new ArrayList<>();
        final class Reclaiming implements DeviceAllocator, MemoryReclaim {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return 0;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}

            @Override
            public OptionalLong reservedBytes(int device) {
                return OptionalLong.of(100);
            }

            @Override
            public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
                asked.add(keepBytes + " " + mode);
                return Optional.of(new TrimResult(100 - keepBytes, OptionalLong.empty(), List.of()));
            }

            @Override
            public <T> Optional<T> extension(Class<T> type) {
                return type.isInstance(this) ? Optional.of(type.cast(this)) : Optional.empty();
            }
        }
        Budget budget = new Budget("all", 1000, null);
        for (String name : List.of("one", "other")) {
            router.routes().open(name, 0, new Reclaiming(), Budgets.of(null, budget), () -> {});
        }
        budget.trim(120);
        assertThat(asked).containsExactly("20 WITHOUT_WAITING");
    }

    @Test
    void aRechargedRouteIsTrimmedByItsPresentLimitOnly() {
        Budget before = new Budget("before", 1000, null);
        Budget above = new Budget("above", 1000, null);
        Budget after = new Budget("after", 1000, above);
        Keeping allocator = new Keeping(100);
        Route route = router.routes().open("one", 0, allocator, Budgets.of(Budgets.of(null, before), above), () -> {});
        assertThat(router.routes().recharge(route, Objects.requireNonNull(Budgets.of(null, after))))
                .isTrue();
        before.trim(0);
        assertThat(allocator.reserved).isEqualTo(100);
        above.trim(60);
        assertThat(allocator.reserved).as("it was and is charged there").isEqualTo(60);
        after.trim(20);
        assertThat(allocator.reserved).isEqualTo(20);
        router.routes().close(route);
        after.trim(0);
        assertThat(allocator.reserved).as("it is closed").isEqualTo(20);
    }

    /// A 64th of the limit at most, half of that at first.
    @Test
    void aThreadHasExactlyWhatItKept() {
        Budget budget = new Budget("all", 64 * MIB, null);
        assertThat(budget.name()).isEqualTo("all");
        Route route = route("one", budget);
        long first = router.allocate(route, 1000, 0);
        assertThat(route.leasedCredit()).isEqualTo(MIB / 2);
        long second = router.allocate(route, MIB / 2, 0);
        assertThat(route.leasedCredit()).as("spent").isZero();
        long third = router.allocate(route, MIB / 2, 0);
        assertThat(route.leasedCredit()).isEqualTo(MIB / 2);
        long fourth = router.allocate(route, MIB / 2 + 1000, 0);
        assertThat(route.leasedCredit()).as("too little, and enough").isEqualTo(MIB / 2);
        router.free(second, 0);
        assertThat(route.leasedCredit()).as("all that it may keep").isEqualTo(MIB);
        router.free(third, 0);
        assertThat(route.leasedCredit()).as("half of that").isEqualTo(MIB / 2);
        router.free(fourth, 0);
        router.free(first, 0);
        assertThat(budget.usedBytes()).isZero();
        assertThat(budget.room()).isEqualTo(64 * MIB - route.leasedCredit());
    }

    @Test
    void nothingIsTakenInAdvanceNearTheLimit() {
        Budget budget = new Budget("all", 64 * MIB, null);
        Route most = route("most", budget);
        Route one = route("one", budget);
        router.allocate(most, 57 * MIB, 0);
        router.allocate(one, 1000, 0);
        assertThat(one.leasedCredit()).isZero();
        router.allocate(route("other", new Budget("part", 64 * MIB, budget)), 1000, 0);
        assertThat(budget.room()).isEqualTo(7 * MIB - 2000 - most.leasedCredit());
    }

    @Test
    void bytesAreTakenForABlockOfAnotherRoute() {
        Budget budget = new Budget("all", 1000, null);
        Budgets budgets = Objects.requireNonNull(Budgets.of(null, budget));
        Route other = route("other", null);
        budgets.take(other, 600);
        assertThat(budget.usedBytes()).isEqualTo(600);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> budgets.take(other, 401))
                .withMessageContaining("600 of them in use");
        budgets.giveBack(600);
        assertThat(budget.usedBytes()).isZero();
    }

    @Test
    void aHandleIsOnlyEqualToItself() {
        LimitHandle above = LimitHandle.of("above", 1000, null);
        LimitHandle handle = LimitHandle.of("one", 100, above);
        LimitHandle alike = new LimitHandle(handle.budget(), above);
        assertThat(handle.budget().parent()).isSameAs(above.budget());
        assertThat(new HashSet<>(List.of(handle, alike))).hasSize(2).contains(handle, alike);
        assertThat(handle).isEqualTo(handle).isNotEqualTo(alike).hasSameHashCodeAs(handle);
    }
}
