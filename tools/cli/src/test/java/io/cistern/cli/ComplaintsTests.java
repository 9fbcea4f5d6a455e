package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.catalog.CatalogProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What users of other frameworks' plugged-in allocators and pools complain of most, with every allocator that is
/// found and with one of two functions that a program wrote itself.
class ComplaintsTests {
    private static final long MIB = 1L << 20;
    private static final long CAPACITY = 256 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(CAPACITY).build();
    private final DeviceMemory memory = open(-1);
    private final TwoFunctions plugin = new TwoFunctions();
    private final long freeBytesAtFirst = gpu.memory().freeBytes(0);

    @AfterEach
    void everythingIsGivenBack() {
        memory.close();
        assertThat(plugin.live).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(freeBytesAtFirst);
        gpu.close();
    }

    private DeviceMemory open(long limitBytes) {
        DeviceMemory.Builder builder = DeviceMemory.builder(gpu)
                .catalog(ServiceLoader.load(CatalogProvider.class)
                        .findFirst()
                        .orElseThrow()
                        .discover(getClass().getClassLoader()));
        return limitBytes < 0 ? builder.open() : builder.limitBytes(limitBytes).open();
    }

    private List<Allocator> ofEveryKind(DeviceMemory in) {
        return List.of(
                in.open("direct"),
                in.open("caching"),
                in.open("async"),
                in.open(OpenOptions.made("two-functions", plugin)));
    }

    private Allocator serving() {
        List<Long> before = memory.allocators().stream()
                .map(each -> each.statistics(0).allocations())
                .toList();
        List<Allocator> all = memory.allocators();
        memory.free(memory.allocate(1000, 0, 0), 0);
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i).statistics(0).allocations() > before.get(i)) {
                return all.get(i);
            }
        }
        throw new AssertionError("nobody served");
    }

    /// 1. A plugged allocator has none of the framework's services.
    @Test
    void aPluginOfTwoFunctionsHasLimitsAndErrorsAsTheBuiltInOnesHave() {
        try (DeviceMemory limited = open(10 * MIB)) {
            for (Allocator allocator : ofEveryKind(limited)) {
                long block = allocator.allocate(8 * MIB, 0, 0);
                assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                        .as(allocator.name())
                        .isThrownBy(() -> allocator.allocate(3 * MIB, 0, 0))
                        .withMessageContaining("limit of " + 10 * MIB);
                limited.free(block, 0);
                limited.free(allocator.allocate(10 * MIB, 0, 0), 0);
            }
        }
    }

    /// 2. Statistics, peaks and their reset are dropped with a plugged allocator.
    @Test
    void everyAllocatorIsMeteredAndItsPeakAndCountsAreReset() {
        for (Allocator allocator : ofEveryKind(memory)) {
            long one = allocator.allocate(3 * MIB, 0, 0);
            memory.free(allocator.allocate(5 * MIB, 0, 0), 0);
            assertThat(allocator.statistics(0).requestedBytes())
                    .as(allocator.name())
                    .isEqualTo(3 * MIB);
            assertThat(allocator.statistics(0).requestedPeakBytes()).isEqualTo(8 * MIB);
            assertThat(allocator.statistics(0).requestedTotalBytes()).isEqualTo(8 * MIB);
            assertThat(allocator.statistics(0).liveBlocks()).isEqualTo(1);

            memory.allocators().forEach(each -> each.resetPeaks(0));
            assertThat(allocator.statistics(0).requestedPeakBytes()).isEqualTo(3 * MIB);
            memory.free(allocator.allocate(MIB, 0, 0), 0);
            assertThat(allocator.statistics(0).requestedPeakBytes()).isEqualTo(4 * MIB);

            memory.allocators().forEach(each -> each.resetTotals(0));
            memory.free(one, 0);
            assertThat(allocator.statistics(0).allocations()).isZero();
            assertThat(allocator.statistics(0).frees()).isEqualTo(1);
            assertThat(allocator.statistics(0).requestedTotalBytes()).isZero();
            assertThat(allocator.statistics(0).liveBlocks()).isZero();
        }
    }

    /// 3. Some methods throw with some allocators, so that a program works with one and breaks with another.
    @Test
    void noMethodIsMissingInOneAllocatorOnly() {
        for (Allocator allocator : ofEveryKind(memory)) {
            assertThatCode(() -> {
                        allocator.trim(0, 0, TrimMode.WITHOUT_WAITING);
                        allocator.reservedBytes(0);
                        allocator.statistics(0);
                        allocator.extension(Runnable.class);
                        memory.streamClosing(0, gpu.streams().create(0));
                        try (Scope _ = allocator.enter()) {
                            memory.free(memory.allocate(1, 0, 0), 0);
                        }
                        memory.currents().set(allocator);
                    })
                    .as(allocator.name())
                    .doesNotThrowAnyException();
        }
    }

    /// 4. An allocator that has been used can't be swapped; importing a library pins it.
    @Test
    void theCurrentAllocatorIsSwappedWhileItsBlocksLive() {
        Allocator first = memory.setCurrent("caching");
        long old = memory.allocate(MIB, 0, 0);
        Allocator second = memory.setCurrent("async");
        long young = memory.allocate(MIB, 0, 0);
        assertThat(memory.allocators()).containsExactly(first, second);
        memory.free(old, 0);
        assertThat(first.isDrained()).isTrue();
        assertThat(second.statistics(0).liveBlocks()).isEqualTo(1);
        memory.free(young, 0);
        assertThat(memory.allocators()).containsExactly(second);
    }

    /// 5. A pool's memory is never returned, or to the wrong function.
    @Test
    void aPoolGivesItsMemoryBackThroughItsOwnFunctionAlsoAfterItsEnd() {
        memory.setCurrent("caching");
        Allocator pool = memory.open(OpenOptions.made("pool", plugin));
        long inside;
        try (Scope _ = pool.enter()) {
            inside = memory.allocate(4 * MIB, 0, 0);
            memory.free(memory.allocate(4 * MIB, 0, 0), 0);
        }
        pool.close();
        assertThat(plugin.live).containsExactly(inside);
        gpu.copies().fillBytes(0, inside, (byte) 1, 4 * MIB, 0); // the block outlives its pool
        assertThat(pool.isDrained()).isFalse();
        memory.free(inside, 0);
        assertThat(plugin.live).isEmpty();
        assertThat(pool.isDrained()).isTrue();
    }

    /// 6. Pools are not safe in threads, and nested ones are routed wrongly.
    @Test
    void nestedPoolsOfManyThreadsAreRoutedRight() throws Exception {
        memory.setCurrent("caching");
        List<Callable<Boolean>> tasks = new ArrayList<>();
        for (int thread = 0; thread < 8; thread++) {
            Allocator outer = memory.open(OpenOptions.made("outer" + thread, new TwoFunctions()));
            Allocator inner = memory.open(OpenOptions.made("inner" + thread, new TwoFunctions()));
            tasks.add(() -> {
                for (int round = 0; round < 200; round++) {
                    try (Scope _ = outer.enter()) {
                        long one = memory.allocate(100, 0, 0);
                        try (Scope _ = inner.enter()) {
                            memory.free(memory.allocate(200, 0, 0), 0);
                        }
                        memory.free(one, 0);
                        memory.free(memory.allocate(100, 0, 0), 0);
                    }
                }
                return outer.statistics(0).requestedTotalBytes() == 200 * 200
                        && inner.statistics(0).requestedTotalBytes() == 200 * 200;
            });
        }
        try (ExecutorService executor = Executors.newFixedThreadPool(tasks.size())) {
            for (Future<Boolean> right : executor.invokeAll(tasks)) {
                assertThat(right.get()).isTrue();
            }
        }
    }

    /// 7. The scope is lost in worker threads. (That it can be reported: `ScopeReportTests`.)
    @Test
    void theScopeIsCarriedToWorkersOfEveryKind() throws Exception {
        memory.setCurrent("caching");
        Allocator pool = memory.open(OpenOptions.made("pool", plugin));
        try (ExecutorService platform = Executors.newSingleThreadExecutor();
                ExecutorService virtual = Executors.newVirtualThreadPerTaskExecutor();
                Scope _ = pool.enter()) {
            ScopeCarrier here = ScopeCarrier.capture(memory);
            for (ExecutorService executor : List.of(platform, virtual)) {
                assertThat(here.executorService(executor).submit(this::serving).get())
                        .isSameAs(pool);
            }
        }
    }

    /// 8. Routing goes through the flags of graph capture: frees are put off, and out of memory is not retried.
    /// (Captures: `CapturedGraphsTests`; this is what a scope must not change.)
    @Test
    void inAScopeFreedMemoryIsReusedAtOnceAndRetriesWork() {
        Allocator current = memory.setCurrent("caching");
        Allocator pool = memory.open("caching");
        long kept = memory.allocate(CAPACITY / 2, 0, 0);
        memory.free(kept, 0); // the current one keeps it
        assertThat(current.reservedBytes(0).orElseThrow()).isGreaterThanOrEqualTo(CAPACITY / 2);
        long other = gpu.streams().create(0);
        try (Scope _ = pool.enter()) {
            long first = memory.allocate(CAPACITY / 4, 0, 0);
            memory.free(first, 0);
            assertThat(memory.allocate(CAPACITY / 4, 0, 0)).isEqualTo(first);
            memory.free(first, 0);
            // Fits only when the pool gives up what it keeps for the first stream.
            memory.free(memory.allocate(CAPACITY * 7 / 16, 0, other), other);
            assertThat(pool.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes())
                    .isPositive();
            current.trim(0, 0, TrimMode.WITHOUT_WAITING);
            assertThat(current.reservedBytes(0)).hasValue(0);
        }
    }

    /// 9. Growth by pages and memory of a special kind exclude each other; one global string configures all.
    @Test
    void growthAndSourceAndOptionsAreEachAllocatorsOwn() {
        List<Allocator> pools = List.of(
                memory.open("caching:source=vmm,page_size=4MiB"),
                memory.open("caching:source=\"vmm:handle=posix_fd\""),
                memory.open("caching:source=linear"),
                memory.open("caching"));
        for (Allocator pool : pools) {
            try (Scope _ = pool.enter()) {
                long small = memory.allocate(3 * MIB, 0, 0);
                long grown = memory.allocate(9 * MIB, 0, 0);
                assertThat(serving()).isSameAs(pool);
                memory.free(small, 0);
                memory.free(grown, 0);
            }
            assertThat(pool.reservedBytes(0).orElseThrow()).as(pool.toString()).isGreaterThanOrEqualTo(12 * MIB);
        }
        assertThat(pools.getFirst().reservedBytes(0).orElseThrow() % (4 * MIB)).isZero();
    }

    /// What a user writes: an allocator and a deleter, and nothing else.
    private final class TwoFunctions implements DeviceAllocator {
        final Set<Long> live = ConcurrentHashMap.newKeySet();

        @Override
        public long allocate(long byteSize, int device, long stream) {
            long address = gpu.memory().allocate(device, byteSize);
            live.add(address);
            return address;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            assertThat(live.remove(address)).isTrue();
            gpu.memory().free(device, address);
        }
    }
}
