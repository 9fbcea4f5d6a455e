package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.MemoryEvent.OutOfMemory.RefusalCause;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DriverSource;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Limits that are set, raised, lowered and lifted while blocks are alive.
class LiveLimitTests {
    private static final long CAPACITY = 1 << 30;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(CAPACITY).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new ArrayAllocatorProvider("array")), List.of(new DriverSource.Linear())))
            .open();

    @AfterEach
    void everythingIsFreeAgain() {
        memory.close();
        assertThat(memory.limits().device(0).usedBytes()).isZero();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    private static void refuses(Runnable allocation) {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(allocation::run)
                .matches(DeviceOutOfMemoryException::isByLimit);
    }

    /// Nothing that the program frees could help.
    @Test
    void aRequestAboveALimitIsRefusedWithoutAnyStep() {
        List<MemoryEvent> events = new ArrayList<>();
        AtomicInteger asked = new AtomicInteger();
        try (Registration _ = memory.listeners().onMemoryPressure((_, _) -> asked.incrementAndGet());
                Registration _ = memory.listeners().onRareEvent(events::add)) {
            memory.limits().device(0).setByteSize(1000);
            DeviceOutOfMemoryException device =
                    catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(1001, 0, 0));
            assertThat(device.canNeverFit()).isTrue();
            assertThat(device.steps()).isEmpty();
            ScopeOptions ofRequest = ScopeOptions.all().limit(MemoryLimit.of("request", 100));
            try (Scope _ = memory.current(0).enter(ofRequest)) {
                assertThat(catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(101, 0, 0))
                                .canNeverFit())
                        .isTrue();
            }
            assertThat(asked).hasValue(0);
            assertThat(events).noneMatch(MemoryEvent.Reclaimed.class::isInstance);
            assertThat(events)
                    .filteredOn(MemoryEvent.OutOfMemory.class::isInstance)
                    .hasSize(2)
                    .allMatch(event -> ((MemoryEvent.OutOfMemory) event).cause() == RefusalCause.TOO_LARGE);

            long half = memory.allocate(600, 0, 0);
            DeviceOutOfMemoryException full =
                    catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(500, 0, 0));
            assertThat(full.canNeverFit()).isFalse();
            assertThat(events.getLast())
                    .isEqualTo(new MemoryEvent.OutOfMemory(full.report().orElseThrow(), RefusalCause.LIMIT));
            assertThat(asked)
                    .as("what fits the limit may be served after frees")
                    .hasPositiveValue();
            memory.free(half, 0);
        }
    }

    @Test
    void theFirstLimitOfADeviceCountsWhatIsAlive() {
        MemoryLimit limit = memory.limits().device(0);
        assertThat(limit.isSet()).isFalse();
        long before = memory.allocate(600, 0, 0);
        assertThat(limit.usedBytes()).isEqualTo(600);
        limit.setByteSize(1000);
        assertThat(limit.usedBytes()).isEqualTo(600);
        refuses(() -> memory.allocate(401, 0, 0));
        long after = memory.allocate(400, 0, 0);
        assertThat(limit.usedBytes()).isEqualTo(1000);
        memory.free(before, 0);
        assertThat(limit.usedBytes()).isEqualTo(400);
        long again = memory.allocate(600, 0, 0);
        long elsewhere = memory.allocate(5000, 1, 0);
        refuses(() -> memory.allocate(1, 0, 0));
        memory.free(after, 0);
        memory.free(again, 0);
        memory.free(elsewhere, 0);
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void aLimitIsRaisedLoweredAndLifted() {
        MemoryLimit limit = memory.limits().device(0);
        limit.setByteSize(100);
        refuses(() -> memory.allocate(101, 0, 0));
        limit.setByteSize(300);
        long block = memory.allocate(300, 0, 0);
        limit.setByteSize(200);
        refuses(() -> memory.allocate(1, 0, 0));
        limit.lift();
        assertThat(limit.isSet()).isFalse();
        long more = memory.allocate(5000, 0, 0);
        limit.setByteSize(5300);
        assertThat(limit.usedBytes()).isEqualTo(5300);
        refuses(() -> memory.allocate(1, 0, 0));
        memory.free(block, 0);
        memory.free(more, 0);
    }

    @Test
    void aShareIsOfTheDevice() {
        MemoryLimit limit = memory.limits().device(1);
        limit.setShare(0.25);
        assertThat(limit.byteSize()).isEqualTo(CAPACITY / 4);
        assertThatIllegalArgumentException().isThrownBy(() -> limit.setShare(1.5));
        assertThatIllegalArgumentException().isThrownBy(() -> limit.setShare(0));
        assertThat(MemoryLimit.of("half", memory, 0.5).byteSize()).isEqualTo(CAPACITY);
        assertThatThrownBy(() -> MemoryLimit.of("no device", 5).setShare(0.5))
                .isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void anAllocatorGetsALimitWhileItServes() {
        Allocator first = memory.open("array");
        Allocator second = memory.open("array");
        long block = first.allocate(700, 0, 0);
        first.limit().setByteSize(1000);
        refuses(() -> first.allocate(301, 1, 0));
        long other = second.allocate(301, 1, 0);
        long rest = first.allocate(300, 1, 0);
        assertThat(first.limit().usedBytes()).isEqualTo(1000);
        assertThat(first.statistics(0).requestedBytes()).isEqualTo(700);
        assertThat(first.statistics(0).liveBlocks()).isEqualTo(1);
        assertThat(memory.ownerOf(block)).isSameAs(first);
        for (long each : new long[] {block, other, rest}) {
            memory.free(each, 0);
        }
        assertThat(first.limit().usedBytes()).isZero();
    }

    @Test
    void aFirstLimitCountsBlocksOfClosedAllocators() {
        Allocator allocator = memory.open("array");
        long block = allocator.allocate(700, 0, 0);
        allocator.close();
        MemoryLimit limit = memory.limits().device(0);
        limit.setByteSize(1000);
        assertThat(limit.usedBytes()).isEqualTo(700);
        memory.free(block, 0);
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void aFirstLimitCountsBlocksFromBeforeAnotherFirstLimit() {
        Allocator allocator = memory.open("array");
        long block = allocator.allocate(700, 0, 0);
        memory.limits().device(0).setByteSize(1000);
        allocator.limit().setByteSize(1000);
        assertThat(allocator.limit().usedBytes()).isEqualTo(700);
        memory.free(block, 0);
        assertThat(allocator.limit().usedBytes()).isZero();
    }

    @Test
    void aFirstLimitCountsBlocksOfWhatIsBuiltOnTheAllocator() {
        Allocator allocator = memory.open("array");
        MemoryLimit limit = allocator.limit();
        try (DeviceAllocator upstream = allocator.asUpstream()) {
            long before = upstream.allocate(700, 0, 0);
            limit.setByteSize(1000);
            assertThat(limit.usedBytes()).isEqualTo(700);
            refuses(() -> upstream.allocate(301, 0, 0));
            long after = upstream.allocate(300, 0, 0);
            upstream.free(before, 700, 0, 0);
            assertThat(limit.usedBytes()).isEqualTo(300);
            upstream.free(after, 300, 0, 0);
            assertThat(limit.usedBytes()).isZero();
            limit.lift();
            memory.free(allocator.allocate(5000, 0, 0), 0);
        }
    }

    @Test
    void anOpenScopeIsLimitedFromTheMomentTheLimitIsSet() {
        Allocator allocator = memory.open("array");
        try (Scope _ = allocator.enter(ScopeOptions.all().device(0))) {
            long before = memory.allocate(100, 0, 0);
            allocator.limit().setByteSize(200);
            refuses(() -> memory.allocate(101, 0, 0));
            long after = memory.allocate(100, 0, 0);
            assertThat(memory.ownerOf(after)).isSameAs(allocator);
            memory.free(before, 0);
            memory.free(after, 0);
        }
    }

    @Test
    void limitsOfScopesHoldBesideALaterOne() {
        MemoryLimit request = MemoryLimit.of("request", 500);
        Allocator allocator = memory.open("array");
        try (Scope _ = allocator.enter(ScopeOptions.all().limit(request))) {
            long before = memory.allocate(100, 0, 0);
            memory.limits().device(0).setByteSize(300);
            assertThat(memory.limits().device(0).usedBytes()).isEqualTo(100);
            refuses(() -> memory.allocate(201, 0, 0));
            long after = memory.allocate(200, 0, 0);
            assertThat(request.usedBytes()).isEqualTo(300);
            memory.limits().device(0).lift();
            refuses(() -> memory.allocate(201, 0, 0));
            memory.free(before, 0);
            memory.free(after, 0);
        }
        assertThat(request.usedBytes()).isZero();
    }

    @Test
    void allocatorsOpenedLaterAreLimitedToo() {
        memory.limits().device(0).setByteSize(100);
        refuses(() -> memory.open("array").allocate(101, 0, 0));
        assertThat(memory.limits().device(0).usedBytes()).isZero();
    }

    @Test
    void closingAnAllocatorAfterItsFirstLimitDrainsIt() {
        Allocator allocator = memory.open("array");
        long block = allocator.allocate(100, 0, 0);
        allocator.limit().setByteSize(1000);
        long other = allocator.allocate(100, 0, 0);
        allocator.close();
        assertThat(allocator.isDrained()).isFalse();
        memory.free(block, 0);
        memory.free(other, 0);
        assertThat(allocator.isDrained()).isTrue();
        assertThatIllegalStateException().isThrownBy(() -> allocator.allocate(1, 0, 0));
    }

    /// Threads allocate and free all the while. No bytes are lost, and the limit holds as soon as it is set.
    @Test
    void threadsGoOnWhileLimitsChange() throws InterruptedException {
        Allocator allocator = memory.open("array");
        AtomicBoolean stop = new AtomicBoolean();
        AtomicReference<Throwable> failed = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            boolean virtual = i == 3;
            Runnable work = () -> allocateUntil(stop, allocator, failed);
            threads.add(
                    virtual
                            ? Thread.ofVirtual().start(work)
                            : Thread.ofPlatform().start(work));
        }
        MemoryLimit ofAllocator = allocator.limit();
        MemoryLimit ofDevice = memory.limits().device(0);
        for (int round = 0; round < 2000; round++) {
            ofAllocator.setByteSize(20_000 + round);
            ofDevice.setByteSize(15_000 + round);
            Thread.onSpinWait();
            ofAllocator.lift();
        }
        stop.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failed.get()).isNull();
        assertThat(ofAllocator.usedBytes()).isZero();
        assertThat(ofDevice.usedBytes()).isZero();
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
    }

    private void allocateUntil(AtomicBoolean stop, Allocator allocator, AtomicReference<Throwable> failed) {
        Deque<Long> live = new ArrayDeque<>();
        try {
            while (!stop.get()) {
                try {
                    live.add(allocator.allocate(256 + live.size() * 7L, 0, 0));
                } catch (DeviceOutOfMemoryException full) {
                    assertThat(full.isByLimit()).isTrue();
                }
                if (live.size() > 20) {
                    memory.free(live.remove(), 0);
                }
            }
        } catch (Throwable failure) {
            failed.set(failure);
        }
        live.forEach(block -> memory.free(block, 0));
    }

    /// A limit for each request leaves nothing that later requests have to pass.
    @Test
    void limitsOfEndedScopesAreTakenOverByLaterOnes() {
        Allocator allocator = memory.open("array");
        List<MemoryLimit> held = new ArrayList<>();
        for (int i = 0; i < 5000; i++) {
            MemoryLimit request = MemoryLimit.of("request " + i, 100 + i);
            held.add(request);
            try (Scope _ = allocator.enter(ScopeOptions.all().limit(request))) {
                memory.free(memory.allocate(100, 0, 0), 0);
            }
        }
        assertThat(memory.router.routes().count()).isLessThan(300);
        try (Scope _ = allocator.enter(ScopeOptions.all().limit(held.getFirst()))) {
            refuses(() -> memory.allocate(101, 0, 0));
            long block = memory.allocate(100, 0, 0);
            assertThat(held.getFirst().usedBytes()).isEqualTo(100);
            assertThat(held.getLast().usedBytes()).isZero();
            memory.free(block, 0);
        }
    }

    @Test
    void aCarriedLimitStaysTheCarriers() {
        Allocator allocator = memory.open("array");
        MemoryLimit carried = MemoryLimit.of("carried", 100);
        ScopeCarrier carrier;
        try (Scope _ = allocator.enter(ScopeOptions.all().limit(carried))) {
            carrier = ScopeCarrier.capture(memory);
        }
        for (int i = 0; i < 200; i++) {
            MemoryLimit other = MemoryLimit.of("other", 1000);
            allocator.call(ScopeOptions.all().limit(other), () -> {
                memory.free(memory.allocate(500, 0, 0), 0);
                return true;
            });
        }
        carrier.run(() -> refuses(() -> memory.allocate(101, 0, 0)));
    }
}
