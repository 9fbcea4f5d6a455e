package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Admission;
import io.cistern.Admission.Basis;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Memory that a library takes by itself, admitted beside what allocators hold.
class AdmissionTests extends PoolFixture {
    private static final long CAPACITY = 256 * MIB;
    private static final Duration SOON = Duration.ofMillis(50);

    AdmissionTests() {
        super(CAPACITY);
        memory.setCurrent("caching");
    }

    private Admission admit(long byteSize, Duration longest) {
        return memory.limits().admit(DEVICE, byteSize, longest, Basis.ESTIMATE);
    }

    private void refuses(long byteSize) {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> admit(byteSize, SOON));
    }

    @Test
    void itIsCountedBesideBlocks() {
        long block = allocate(50 * MIB);
        try (Admission admission = memory.admit(DEVICE, 100 * MIB)) {
            assertThat(admission.byteSize()).isEqualTo(100 * MIB);
            assertThat(memory.statistics(DEVICE).requestedBytes()).isEqualTo(150 * MIB);
            assertThat(memory.statistics(DEVICE).reservedBytes().orElseThrow()).isGreaterThanOrEqualTo(150 * MIB);
            assertThat(memory.liveBlocks())
                    .anySatisfy(live -> assertThat(live.byteSize()).isEqualTo(100 * MIB));
            assertThat(memory.memorySummary(DEVICE)).contains("admitted");
            refuses(120 * MIB);
            admit(90 * MIB, SOON).close();
        }
        assertThat(memory.statistics(DEVICE).requestedBytes()).isEqualTo(50 * MIB);
        admit(190 * MIB, SOON).close();
        free(block);
    }

    @Test
    void memoryOfAPoolOnAnotherAllocatorIsCountedOnce() {
        try (MemoryPool pool = builder().upstream(memory.current(DEVICE)).open()) {
            long block = pool.allocate(100 * MIB, DEVICE, stream);
            admit(140 * MIB, SOON).close();
            free(block);
        }
    }

    @Test
    void moreThanTheLimitOfTheDeviceMemoryIsRefusedAtOnce() {
        try (DeviceMemory limited = DeviceMemory.builder(gpu)
                .limit(MemoryLimit.of("program", 100 * MIB))
                .open()) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                    .isThrownBy(() -> limited.admit(DEVICE, 101 * MIB))
                    .matches(DeviceOutOfMemoryException::canNeverFit);
        }
    }

    @Test
    void limitsAndReserveHold() {
        memory.limits().device(DEVICE).setByteSize(100 * MIB);
        long block = allocate(60 * MIB);
        refuses(41 * MIB);
        try (Admission _ = admit(40 * MIB, SOON)) {
            assertThatExceptionOfType(DeviceOutOfMemoryException.class).isThrownBy(() -> allocate(1));
        }
        memory.limits().device(DEVICE).lift();
        memory.limits().setReserve(DEVICE, 100 * MIB);
        refuses(100 * MIB);
        admit(90 * MIB, SOON).close();
        free(block);
    }

    @ParameterizedTest
    @EnumSource(Basis.class)
    void idleMemoryGoesBackFirst(Basis basis) {
        free(allocate(200 * MIB));
        gpu.streams().synchronize(DEVICE, stream);
        try (Admission _ = memory.limits().admit(DEVICE, 200 * MIB, SOON, basis)) {
            long library = gpu.memory().allocate(DEVICE, 200 * MIB);
            gpu.memory().free(DEVICE, library);
        }
    }

    @Test
    void theDriversFreeBytesDecideIfThatIsWanted() {
        long foreign = gpu.memory().allocate(DEVICE, 200 * MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> memory.limits().admit(DEVICE, 100 * MIB, SOON, Basis.FREE_MEMORY))
                .withStackTraceContaining("according to the driver");
        admit(100 * MIB, SOON).close();
        gpu.memory().free(DEVICE, foreign);
        Admission first = memory.limits().admit(DEVICE, 100 * MIB, SOON, Basis.FREE_MEMORY);
        long library = gpu.memory().allocate(DEVICE, 100 * MIB);
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> memory.limits().admit(DEVICE, 100 * MIB, SOON, Basis.FREE_MEMORY));
        first.taken();
        first.taken();
        memory.limits().admit(DEVICE, 100 * MIB, SOON, Basis.FREE_MEMORY).close();
        gpu.memory().free(DEVICE, library);
        first.close();
        first.close();
        memory.limits().admit(DEVICE, 250 * MIB, SOON, Basis.FREE_MEMORY).close();
    }

    @Test
    void waitersAreAdmittedInTheirOrder() throws Exception {
        Admission first = memory.admit(DEVICE, 200 * MIB);
        List<String> order = new CopyOnWriteArrayList<>();
        List<CompletableFuture<Void>> waiting = new ArrayList<>();
        for (String name : List.of("first", "second", "virtual")) {
            Runnable admitting = () -> {
                try (Admission _ = memory.admit(DEVICE, 200 * MIB)) {
                    order.add(name);
                }
            };
            CompletableFuture<Void> done = new CompletableFuture<>();
            Runnable told = () -> {
                try {
                    admitting.run();
                    done.complete(null);
                } catch (Throwable failure) {
                    done.completeExceptionally(failure);
                }
            };
            Thread.Builder kind = name.equals("virtual") ? Thread.ofVirtual() : Thread.ofPlatform();
            Thread thread = kind.unstarted(told);
            thread.start();
            waiting.add(done);
            while (thread.getState() == Thread.State.NEW || thread.getState() == Thread.State.RUNNABLE) {
                Thread.onSpinWait();
            }
            Thread.sleep(20);
        }
        assertThat(order).isEmpty();
        first.close();
        for (CompletableFuture<Void> each : waiting) {
            each.get(10, TimeUnit.SECONDS);
        }
        assertThat(order).containsExactly("first", "second", "virtual");
    }

    @Test
    void aFreedBlockLetsAWaiterIn() throws Exception {
        long block = allocate(200 * MIB);
        CompletableFuture<Admission> waiting = CompletableFuture.supplyAsync(() -> memory.admit(DEVICE, 200 * MIB));
        assertThatThrownBy(() -> waiting.get(100, TimeUnit.MILLISECONDS)).isNotNull();
        free(block);
        gpu.streams().synchronize(DEVICE, stream);
        waiting.get(10, TimeUnit.SECONDS).close();
    }

    @Test
    void whatCanNeverFitIsRefusedAtOnce() {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> memory.admit(DEVICE, CAPACITY + 1))
                .matches(DeviceOutOfMemoryException::canNeverFit);
        assertThatIllegalArgumentException().isThrownBy(() -> memory.admit(DEVICE, -1));
        assertThatThrownBy(() -> memory.admit(7, 1)).isInstanceOf(IndexOutOfBoundsException.class);
        memory.admit(DEVICE, 0).close();
    }

    @Test
    void anInterruptedWaiterIsRefusedAndStaysInterrupted() throws Exception {
        try (Admission _ = memory.admit(DEVICE, 200 * MIB)) {
            CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
            Thread waiter = Thread.ofPlatform().start(() -> {
                try {
                    memory.admit(DEVICE, 200 * MIB).close();
                    interrupted.complete(false);
                } catch (DeviceOutOfMemoryException refused) {
                    interrupted.complete(Thread.currentThread().isInterrupted());
                }
            });
            Thread.sleep(30);
            waiter.interrupt();
            assertThat(interrupted.get(10, TimeUnit.SECONDS)).isTrue();
        }
    }

    @Test
    void observersAreToldAsOfAnyBlock() {
        List<MemoryEvent> events = new CopyOnWriteArrayList<>();
        try (Registration _ = memory.listeners().onEvent(events::add)) {
            memory.admit(DEVICE, 10 * MIB).close();
        }
        assertThat(events)
                .anySatisfy(event -> assertThat(event)
                        .isInstanceOfSatisfying(MemoryEvent.Allocated.class, allocated -> {
                            assertThat(allocated.byteSize()).isEqualTo(10 * MIB);
                            assertThat(allocated.allocator()).isEqualTo("admitted");
                        }))
                .anySatisfy(event -> assertThat(event).isInstanceOf(MemoryEvent.Freed.class));
    }

    @Test
    void anAdmissionOutlivesTheDeviceMemory() {
        Admission admission = memory.admit(DEVICE, MIB);
        memory.close();
        admission.close();
        assertThatThrownBy(() -> memory.admit(DEVICE, MIB)).isInstanceOf(IllegalStateException.class);
    }
}
