package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MemoryLimitTests {
    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(1L << 30).build();
    private final MemoryLimit process = MemoryLimit.of("process", 1000);
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of(new DriverSource.Linear())))
            .limit(process)
            .open();
    private final Allocator current = memory.setCurrent("direct");
    private final Allocator pool = memory.open(OpenOptions.spec("direct").limit(process.child("pool", 700)));

    @AfterEach
    void everythingIsFreeAgain() {
        memory.close();
        assertThat(process.usedBytes()).isZero();
        assertThat(current.isDrained()).isTrue();
        assertThat(pool.isDrained()).isTrue();
        assertThat(gpu.misuses()).isEmpty();
    }

    @Test
    void theLimitOfAPoolIsChargedUnderOthersAndCanBeChanged() {
        MemoryLimit pools = process.child("pools", 500);
        try (MemoryPool own =
                        MemoryPool.builder(memory).spec("direct").limit(pools).open();
                MemoryPool plain = MemoryPool.builder(memory)
                        .spec("direct")
                        .limitBytes(100)
                        .open()) {
            assertThat(own.limit()).isEqualTo(pools);
            long block = own.allocate(400, 0, 0);
            assertThat(process.usedBytes()).isEqualTo(400);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> plain.allocate(101, 0, 0));
            plain.limit().setByteSize(200);
            memory.free(plain.allocate(101, 0, 0), 0);
            pools.setByteSize(399);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> own.allocate(1, 0, 0));
            memory.free(block, 0);
        }
        try (MemoryPool without = memory.pools().open("direct")) {
            assertThat(without.limit().isSet()).isFalse();
        }
    }

    @Test
    void aLimitOfTheProcessSpansItsDevicesAndAllocators() {
        long first = memory.allocate(600, 0, 0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> pool.allocate(401, 1, 0));
        long second = pool.allocate(400, 1, 0);
        assertThat(process.usedBytes()).isEqualTo(1000);
        memory.free(first, 0);
        memory.free(second, 0);
    }

    @Test
    void aRefusalNamesTheFullLimitWithItsUseAndARemedy() {
        long outside = memory.allocate(100, 0, 0);
        MemoryLimit task = process.child("task", 300);
        try (Scope _ = pool.enter(ScopeOptions.all().limit(task))) {
            long inside = memory.allocate(250, 0, 0);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> memory.allocate(51, 0, 0))
                    .withMessageContaining("51 bytes requested")
                    .withMessageEndingWith(
                            "; task: limit of 300 bytes, 250 of them in use; free what is charged to it, or raise it");
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> memory.allocate(701, 0, 0))
                    .withMessageContaining("task: limit of 300 bytes, 250 of them in use; request less, or raise it")
                    .withMessageContaining("pool: limit of 700 bytes, 250 of them in use; request less, or raise it")
                    .withMessageContaining("process: limit of 1000 bytes, 350 of them in use; free what");
            memory.free(inside, 0);
        }
        memory.free(outside, 0);
    }

    @Test
    void aBlockOfAScopeIsChargedUntilItIsFreedWhereverThatIs() throws Exception {
        MemoryLimit task = process.child("task", 300);
        long block;
        try (Scope _ = pool.enter(ScopeOptions.all().limit(task))) {
            block = memory.allocate(200, 0, 0);
        }
        assertThat(task.usedBytes()).isEqualTo(200);
        Thread.ofPlatform().start(() -> memory.free(block, 0)).join();
        assertThat(task.usedBytes()).isZero();
    }

    @Test
    void anInnerScopeHasTheLimitsAboveItsOwn() {
        MemoryLimit outer = process.child("outer", 300);
        MemoryLimit inner = outer.child("inner", 1000);
        try (Scope _ = pool.enter(ScopeOptions.all().limit(outer))) {
            long first = memory.allocate(200, 0, 0);
            try (Scope _ = pool.enter(ScopeOptions.all().limit(inner))) {
                assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                        .isThrownBy(() -> memory.allocate(101, 0, 0));
                memory.free(memory.allocate(100, 0, 0), 0);
            }
            memory.free(first, 0);
        }
    }

    @Test
    void aScopeWithALimitIsCarriedWithIt() throws Exception {
        MemoryLimit task = process.child("task", 300);
        ScopeCarrier carrier;
        try (Scope _ = pool.enter(ScopeOptions.all().limit(task))) {
            carrier = ScopeCarrier.capture(memory);
        }
        try (ExecutorService platform = Executors.newSingleThreadExecutor();
                ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor()) {
            for (ExecutorService executor : List.of(platform, virtual)) {
                Future<Long> block = carrier.executorService(executor).submit(() -> memory.allocate(300, 0, 0));
                assertThat(block.get()).isNotZero();
                assertThat(task.usedBytes()).isEqualTo(300);
                assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                        .isThrownBy(() -> carrier.run(() -> memory.allocate(1, 0, 0)));
                memory.free(block.get(), 0);
            }
        }
    }

    @Test
    void blocksOfScopesWithLimitsAreInTheStatisticsOfTheirAllocator() {
        long outside = pool.allocate(100, 0, 0);
        long inside;
        try (Scope _ = pool.enter(ScopeOptions.all().limit(process.child("task", 300)))) {
            inside = memory.allocate(200, 0, 0);
        }
        assertThat(pool.statistics(0))
                .returns(2L, AllocatorStatistics::allocations)
                .returns(300L, AllocatorStatistics::requestedBytes)
                .returns(300L, AllocatorStatistics::requestedTotalBytes);
        memory.free(outside, 0);
        memory.free(inside, 0);
        assertThat(pool.statistics(0).liveBlocks()).isZero();
    }

    @Test
    void anAllocatorThatClosedEndsWithTheLastBlockOfItsScopes() {
        long block;
        try (Scope _ = pool.enter(ScopeOptions.all().limit(process.child("task", 300)))) {
            block = memory.allocate(200, 0, 0);
            pool.close();
            assertThatIllegalStateException().isThrownBy(() -> memory.allocate(1, 0, 0));
        }
        assertThat(pool.isDrained()).isFalse();
        memory.free(block, 0);
        assertThat(pool.isDrained()).isTrue();
        assertThatIllegalStateException()
                .isThrownBy(() -> pool.enter(ScopeOptions.all().limit(process)));
    }

    /// Owner records can name 65,536 routes: a program that makes a limit for each request must not run out of
    /// them.
    @Test
    void limitsForEachOfManyRequestsMayBeMadeAndForgotten() {
        for (int request = 0; request < 70_000; request++) {
            try (Scope _ = pool.enter(ScopeOptions.all().limit(process.child("request", 300)))) {
                if (request % 100 == 0) {
                    memory.free(memory.allocate(300, 0, 0), 0);
                    assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                            .isThrownBy(() -> memory.allocate(301, 0, 0));
                }
            }
            if (request % 10_000 == 0) {
                System.gc();
            }
        }
    }

    @Test
    void aLimitIsNotNegative() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> MemoryLimit.of("wrong", -1))
                .withMessageContaining("-1");
        try (Scope _ = pool.enter(ScopeOptions.all().limit(process.child("nothing", 0)))) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> memory.allocate(1, 0, 0));
        }
    }

    @Test
    void aLimitForEachRequestCostsTheSameBesideThousandsOfThem() {
        List<MemoryLimit> limits = new ArrayList<>();
        long few = garbageOfRequests(limits, 500);
        garbageOfRequests(limits, 4000);

        assertThat(garbageOfRequests(limits, 500)).isLessThan(3 * few);
    }

    private long garbageOfRequests(List<MemoryLimit> limits, int count) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < count; i++) {
            MemoryLimit request = process.child("request", 100);
            limits.add(request);
            try (Scope _ = pool.enter(ScopeOptions.all().limit(request))) {
                memory.free(memory.allocate(100, 1, 0), 0);
            }
        }
        return threads.getCurrentThreadAllocatedBytes() - before;
    }

    @Test
    void aLimitThatIsLoweredRefusesUntilThereIsRoom() {
        MemoryLimit task = process.child("task", 600);
        try (Scope _ = pool.enter(ScopeOptions.all().limit(task))) {
            long first = memory.allocate(250, 0, 0);
            long second = memory.allocate(250, 0, 0);
            task.setByteSize(300);
            assertThat(task.byteSize()).isEqualTo(300);
            assertThat(task.usedBytes()).isEqualTo(500);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> memory.allocate(1, 0, 0))
                    .withMessageContaining("task: limit of 300 bytes, 500 of them in use");
            memory.free(first, 0);
            long third = memory.allocate(50, 0, 0);
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> memory.allocate(1, 0, 0));
            memory.free(second, 0);
            memory.free(third, 0);
        }
    }

    @Test
    void aLimitThatIsRaisedServesWhatItRefused() {
        process.setByteSize(2000);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> pool.allocate(701, 0, 0))
                .withMessageContaining("pool: limit of 700 bytes");
        memory.free(memory.allocate(2000, 0, 0), 0);
        process.setByteSize(0);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> memory.allocate(1, 0, 0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> process.setByteSize(-1))
                .withMessage("the limit of process is negative: -1");
        assertThat(process.byteSize()).isZero();
    }
}
