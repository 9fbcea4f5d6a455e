package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.tuple;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.MemoryEvent.OutOfMemory.RefusalCause;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.diagnostics.TriedStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.catalog.Catalog;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// How often each step is taken, whom it asks, and what is noted of it. The allocators here have no memory until a step
/// gives them some.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ReclaimRuleTests {
    private static final long MIB = 1 << 20;
    private static final long REQUEST = 1000;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    private final List<DeviceMemory> opened = new ArrayList<>();
    private final List<MemoryEvent> events = new ArrayList<>();
    private final Scripted own = new Scripted("own");
    private final Scripted other = new Scripted("other");

    /// What the two allocators were asked to do, in order.
    private final List<String> calls = new ArrayList<>();

    @AfterEach
    void close() {
        opened.forEach(DeviceMemory::close);
        gpu.close();
    }

    /// Has memory, and gives some, as a test says.
    private class Scripted implements DeviceAllocator, MemoryReclaim {
        private final String name;
        final long address;
        volatile int requests;
        volatile boolean hasMemory;

        /// What each step gives; empty for a trim instead.
        OptionalLong given = OptionalLong.of(0);

        long trimmed;
        Runnable whenTrimmed = () -> {};
        Optional<CompactionResult> compacted = Optional.empty();
        Optional<CompactionResult> planned = Optional.empty();

        Scripted(String name) {
            this.name = name;
            this.address = name.length() * MIB;
        }

        @Override
        @SuppressWarnings("NonAtomicOperationOnVolatileField") // one thread asks
        public long allocate(long byteSize, int device, long stream) {
            requests++;
            if (hasMemory) {
                return address;
            }
            throw new DeviceOutOfMemoryException(byteSize, device, "");
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}

        @Override
        public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
            calls.add(name + " " + step);
            return given;
        }

        @Override
        public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
            calls.add(name + " trim " + mode);
            whenTrimmed.run();
            return Optional.of(new TrimResult(trimmed, OptionalLong.empty(), List.of()));
        }

        @Override
        public Optional<CompactionResult> compact(int device, long byteSize) {
            calls.add(name + " compact");
            return compacted;
        }

        @Override
        public Optional<CompactionResult> planCompaction(int device) {
            return planned;
        }

        @Override
        public void failed(DeviceOutOfMemoryException refusal) {
            calls.add(name + " failed");
        }
    }

    private DeviceMemory open(Set<ReclaimStep> steps) {
        return open(DeviceMemory.builder(gpu).reclaimSteps(steps));
    }

    private DeviceMemory open(DeviceMemory.Builder builder) {
        DeviceMemory memory = builder.catalog(Catalog.of(List.of(), List.of())).open();
        opened.add(memory);
        memory.currents().set(memory.open(OpenOptions.made("own", own)));
        memory.open(OpenOptions.made("other", other));
        memory.listeners().onRareEvent(events::add);
        return memory;
    }

    private static DeviceOutOfMemoryException refused(DeviceMemory memory) {
        return catchThrowableOfType(DeviceOutOfMemoryException.class, () -> memory.allocate(REQUEST, 0, 0));
    }

    private static TriedStep tried(DeviceOutOfMemoryException refusal, ReclaimStep step) {
        return refusal.steps().stream()
                .filter(each -> each.step() == step)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void anAllocatorIsAskedAgainAfterAStepThatGave() {
        refused(open(Set.of()));
        assertThat(own.requests).as("no steps").isEqualTo(1);
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        own.requests = 0;
        refused(memory);
        assertThat(own.requests).as("nothing given: at the end").isEqualTo(2);
        memory.listeners().onMemoryPressure((_, _) -> 10);
        memory.listeners().onMemoryPressure((_, _) -> 20);
        own.requests = 0;
        assertThat(tried(refused(memory), ReclaimStep.CALLBACKS).byteSize()).isEqualTo(30);
        assertThat(own.requests).as("once for both").isEqualTo(3);
        assertThat(other.requests).isZero();
    }

    @Test
    void onlyStepsThatHadSomethingToTryAreNoted() {
        Set<ReclaimStep> steps = Set.of(
                ReclaimStep.GRAPHS,
                ReclaimStep.CALLBACKS,
                ReclaimStep.LENDING,
                ReclaimStep.OTHER_ALLOCATORS,
                ReclaimStep.SPILL);
        DeviceMemory memory = open(steps);
        assertThat(stepsOf(refused(memory))).containsExactly(ReclaimStep.OTHER_ALLOCATORS);
        try (Registration _ = memory.listeners().onMemoryPressure((_, _) -> 0);
                Registration _ = memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> 0)) {
            assertThat(stepsOf(refused(memory)))
                    .containsExactly(ReclaimStep.CALLBACKS, ReclaimStep.OTHER_ALLOCATORS, ReclaimStep.SPILL);
        }
        assertThat(events)
                .filteredOn(MemoryEvent.Reclaimed.class::isInstance)
                .as("one for each step that was noted")
                .hasSize(4);
    }

    private static List<ReclaimStep> stepsOf(DeviceOutOfMemoryException refusal) {
        return refusal.steps().stream().map(TriedStep::step).toList();
    }

    @Test
    void bytesThatTheDeviceHasFreeAfterAStepCountAsGiven() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        long spare = gpu.memory().allocate(0, 64 * MIB);
        memory.listeners().onMemoryPressure((_, _) -> {
            gpu.memory().free(0, spare);
            return 0;
        });
        assertThat(tried(refused(memory), ReclaimStep.CALLBACKS).byteSize()).isEqualTo(64 * MIB);
        assertThat(own.requests).isEqualTo(3);
    }

    @Test
    void anAllocatorGivesUpToThreeTimesAndEachStepIsNotedOnce() {
        gpu.keepBusy(0, 0, TimeUnit.HOURS.toNanos(1));
        gpu.devices().synchronize(0);
        DeviceMemory memory = open(Set.of(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE));
        own.given = OptionalLong.of(10);
        DeviceOutOfMemoryException refusal = refused(memory);
        assertThat(calls)
                .containsExactly("own TRIM", "own SYNCHRONIZE", "own SYNCHRONIZE", "own SYNCHRONIZE", "own failed");
        assertThat(refusal.steps())
                .extracting(TriedStep::step, TriedStep::byteSize)
                .containsExactly(tuple(ReclaimStep.TRIM, 10L), tuple(ReclaimStep.SYNCHRONIZE, 30L));
        assertThat(refusal.steps())
                .allSatisfy(step -> assertThat(step.nanos()).isBetween(0L, TimeUnit.MINUTES.toNanos(1)));
    }

    @Test
    void anAllocatorThatHasNothingIsAskedOnceForEachStep() {
        refused(open(Set.of(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE)));
        assertThat(calls).containsExactly("own TRIM", "own SYNCHRONIZE", "own failed");
    }

    @Test
    void anAllocatorThatCannotGiveALittleIsTrimmed() {
        DeviceMemory memory = open(Set.of(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE));
        own.given = OptionalLong.empty();
        own.trimmed = 5;
        DeviceOutOfMemoryException refusal = refused(memory);
        assertThat(calls)
                .containsExactly(
                        "own TRIM",
                        "own trim WITHOUT_WAITING",
                        "own SYNCHRONIZE",
                        "own trim SYNCHRONIZE",
                        "own failed");
        assertThat(tried(refusal, ReclaimStep.TRIM).byteSize()).isEqualTo(5);
    }

    @Test
    void allOtherAllocatorsAreTrimmed() {
        DeviceMemory memory = open(Set.of(ReclaimStep.OTHER_ALLOCATORS));
        Scripted third = new Scripted("third");
        memory.open(OpenOptions.made("third", third));
        other.trimmed = 10;
        third.trimmed = 20;
        assertThat(tried(refused(memory), ReclaimStep.OTHER_ALLOCATORS).byteSize())
                .isEqualTo(30);
        assertThat(calls).containsExactly("other trim WITHOUT_WAITING", "third trim WITHOUT_WAITING", "own failed");
    }

    /// What was given up after the wait may have gone to a third allocator.
    @Test
    void othersAreTrimmedAgainIfAWaitForTheirWorkGaveSomething() {
        DeviceMemory memory = open(Set.of(ReclaimStep.OTHER_ALLOCATORS, ReclaimStep.SYNCHRONIZE));
        refused(memory);
        assertThat(calls)
                .containsExactly(
                        "own SYNCHRONIZE", "other trim WITHOUT_WAITING", "other trim SYNCHRONIZE", "own failed");
        calls.clear();
        other.whenTrimmed = () -> {
            long trims = calls.stream().filter(call -> call.startsWith("other")).count();
            other.trimmed = trims > 1 ? 10 : 0;
            own.hasMemory = trims == 3;
        };
        memory.free(memory.allocate(REQUEST, 0, 0), 0);
        assertThat(calls).endsWith("other trim SYNCHRONIZE", "other trim WITHOUT_WAITING");
    }

    @Test
    void aWaitForTheWorkOfOthersServesTheRequestOnce() {
        DeviceMemory memory = open(Set.of(ReclaimStep.OTHER_ALLOCATORS, ReclaimStep.SYNCHRONIZE));
        other.whenTrimmed = () -> {
            own.hasMemory = calls.getLast().equals("other trim SYNCHRONIZE");
            other.trimmed = own.hasMemory ? 10 : 0;
        };
        long block = memory.allocate(REQUEST, 0, 0);
        assertThat(memory.current(0).statistics(0).liveBlocks()).isOne();
        assertThat(calls).endsWith("other trim SYNCHRONIZE");
        memory.free(block, 0);
    }

    /// Or the list would grow with each look of a thread that waits.
    @Test
    void whatStepsThrowIsSuppressedOnce() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu)
                .reclaimSteps(Set.of(ReclaimStep.TRIM, ReclaimStep.SYNCHRONIZE, ReclaimStep.FREES))
                .waitForFrees(Duration.ofMillis(5)));
        Allocator throwing = memory.open(OpenOptions.made("throwing", new Scripted("throwing") {
            @Override
            public OptionalLong reclaim(ReclaimStep step, DeviceOutOfMemoryException refusal, long stream) {
                throw new IllegalStateException(step.name());
            }
        }));
        assertThatThrownBy(() -> throwing.allocate(REQUEST, 0, 0))
                .satisfies(refusal -> assertThat(refusal.getSuppressed())
                        .extracting(Throwable::getMessage)
                        .containsExactly("TRIM", "SYNCHRONIZE"));
    }

    @Test
    void aListenerMayRunOutOfMemoryMoreThanOnce() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        int[] asked = {0};
        memory.listeners().onMemoryPressure((_, _) -> {
            if (asked[0]++ == 0) {
                refused(memory);
                refused(memory);
            }
            return 0;
        });
        refused(memory);
        assertThat(asked[0]).as("only for the first request").isOne();
    }

    @Test
    void ownMemoryIsCompactedBeforeThatOfOthers() {
        DeviceMemory memory = open(Set.of(ReclaimStep.COMPACTION));
        memory.listeners().onCompaction(Listeners.WorkPause.ofOneThread());
        own.compacted = Optional.of(CompactionResult.nothing("in a test"));
        DeviceOutOfMemoryException refusal = refused(memory);
        assertThat(calls).containsExactly("own compact", "other compact", "own failed");
        assertThat(tried(refusal, ReclaimStep.COMPACTION).note()).isEqualTo("in a test");
        calls.clear();
        own.compacted = Optional.of(new CompactionResult(10, 40, 1, 0, ""));
        refusal = refused(memory);
        assertThat(calls).containsExactly("own compact", "own compact", "own compact", "own failed");
        assertThat(tried(refusal, ReclaimStep.COMPACTION).byteSize()).isEqualTo(30);
        assertThat(tried(refusal, ReclaimStep.COMPACTION).note()).isEqualTo("40 bytes moved");
    }

    @Test
    void anotherAllocatorIsNamedIfItMovesMemoryAndElseNotMentioned() {
        DeviceMemory memory = open(Set.of(ReclaimStep.COMPACTION));
        memory.listeners().onCompaction(Listeners.WorkPause.ofOneThread());
        other.compacted = Optional.of(CompactionResult.nothing("it holds nothing"));
        assertThat(refused(memory)).hasMessageNotContaining("compaction");
        other.compacted = Optional.of(new CompactionResult(10, 40, 1, 0, ""));
        assertThat(refused(memory)).hasMessageEndingWith("; compaction: 40 bytes moved in other");
    }

    @Test
    void withoutAPauseAnotherAllocatorIsNamedIfItCouldFreeMemory() {
        DeviceMemory memory = open(Set.of(ReclaimStep.COMPACTION));
        other.planned = Optional.of(CompactionResult.nothing("it holds nothing"));
        assertThat(refused(memory)).hasMessageNotContaining("compaction");
        own.planned = Optional.of(CompactionResult.nothing("it can't"));
        assertThat(refused(memory)).hasMessageEndingWith("; compaction: it can't");
        other.planned = Optional.of(new CompactionResult(10, 40, 1, 0, ""));
        assertThat(refused(memory))
                .hasMessageContaining("; compaction: 10 bytes would be freed in other; live memory moves only while");
        own.planned = Optional.of(new CompactionResult(20, 40, 1, 0, ""));
        assertThat(refused(memory))
                .hasMessageContaining("; compaction: 20 bytes would be freed, 10 bytes would be freed in other; live");
    }

    @Test
    void theOwnAllocatorIsFirstEvenIfItOpenedLast() {
        DeviceMemory memory = open(Set.of(ReclaimStep.COMPACTION));
        memory.listeners().onCompaction(Listeners.WorkPause.ofOneThread());
        Scripted last = new Scripted("last");
        Allocator asked = memory.open(OpenOptions.made("last", last));
        assertThatThrownBy(() -> asked.allocate(REQUEST, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(calls).containsExactly("last compact", "own compact", "other compact", "last failed");
    }

    /// However much a store says that it has given, it is asked for twice as much only as long as that is a number.
    @Test
    void aStoreThatAlwaysClaimsToGiveIsNotAskedForEver() {
        DeviceMemory memory = open(Set.of(ReclaimStep.SPILL));
        List<Long> asked = new ArrayList<>();
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, byteSize) -> {
            asked.add(byteSize);
            return byteSize;
        });
        refused(memory);
        assertThat(asked)
                .hasSizeBetween(10, 63)
                .allSatisfy(byteSize -> assertThat(byteSize).isPositive());
    }

    @Test
    void eachStepAndTheRefusalAreEvents() {
        DeviceMemory memory = open(DeviceMemory.builder(gpu)
                .reclaimSteps(Set.of(ReclaimStep.TRIM, ReclaimStep.SPILL, ReclaimStep.FREES))
                .waitForFrees(Duration.ofMillis(5)));
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> 0);
        own.given = OptionalLong.of(10);
        DeviceOutOfMemoryException refusal = refused(memory);
        assertThat(events)
                .containsExactly(
                        new MemoryEvent.Reclaimed(0, REQUEST, tried(refusal, ReclaimStep.TRIM)),
                        new MemoryEvent.Reclaimed(0, REQUEST, tried(refusal, ReclaimStep.SPILL)),
                        new MemoryEvent.Reclaimed(0, REQUEST, tried(refusal, ReclaimStep.FREES)),
                        new MemoryEvent.OutOfMemory(refusal.report().orElseThrow(), RefusalCause.MEMORY));
        assertThat(tried(refusal, ReclaimStep.FREES).byteSize()).isZero();
    }

    @Test
    void aPauseHearsOfNoWaitsAfterItsMemoryIsClosed() {
        DeviceMemory closed = open(Set.of(ReclaimStep.FREES));
        int[] waits = {0};
        closed.listeners().onCompaction(new Listeners.WorkPause() {
            @Override
            public Optional<Registration> begin(int device, Duration atMost) {
                return Optional.empty();
            }

            @Override
            public Registration rest() {
                waits[0]++;
                return () -> {};
            }
        });
        DeviceMemory waiting = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofMillis(5)));
        refused(waiting);
        assertThat(waits[0]).as("a wait in any device memory").isPositive();
        closed.close();
        waits[0] = 0;
        refused(waiting);
        assertThat(waits[0]).isZero();
    }

    @Test
    void aThreadThatIsInterruptedWaitsForNoFrees() throws Exception {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofDays(1)));
        FutureTask<Boolean> interrupted = new FutureTask<>(() -> {
            Thread.currentThread().interrupt();
            refused(memory);
            return Thread.currentThread().isInterrupted();
        });
        Thread.ofPlatform().daemon().start(interrupted);
        assertThat(interrupted.get(30, TimeUnit.SECONDS)).as("it still is").isTrue();
    }

    @Test
    void aThreadThatWaitsForFreesTakesWhatAnotherThreadsStepGave() throws Exception {
        DeviceMemory memory = open(DeviceMemory.builder(gpu).waitForFrees(Duration.ofDays(1)));
        FutureTask<Long> waiting = new FutureTask<>(() -> memory.allocate(REQUEST, 0, 0));
        Thread thread = Thread.ofPlatform().daemon().start(waiting);
        while (own.requests < 2 || thread.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        memory.listeners().onMemoryPressure((_, _) -> {
            own.hasMemory = true;
            other.hasMemory = true;
            return 10;
        });
        memory.allocators().getLast().allocate(REQUEST, 0, 0);
        assertThat(waiting.get(30, TimeUnit.SECONDS)).isEqualTo(own.address);
    }

    @Test
    void aLimitsRefusalIsNoFailureOfTheAllocator() {
        DeviceMemory memory = open(Set.of());
        memory.limits().device(0).setByteSize(REQUEST - 1);
        assertThat(refused(memory).isByLimit()).isTrue();
        assertThat(calls).isEmpty();
        memory.limits().device(0).setByteSize(REQUEST);
        refused(memory);
        assertThat(calls).containsExactly("own failed");
    }

    /// An exception can't be its own suppressed one.
    @Test
    void anAllocatorMayThrowTheRefusalThatItIsTold() {
        DeviceMemory memory = open(Set.of(ReclaimStep.TRIM));
        Allocator throwing = memory.open(OpenOptions.made("throwing", new Scripted("throwing") {
            @Override
            public void failed(DeviceOutOfMemoryException refusal) {
                throw refusal;
            }
        }));
        assertThatThrownBy(() -> throwing.allocate(REQUEST, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
    }

    @Test
    void aListenerMayCloseAnAllocatorThatRefusedItBefore() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        Allocator refusing = memory.allocators().getLast();
        memory.listeners().onMemoryPressure((_, _) -> {
            assertThatThrownBy(() -> refusing.allocate(REQUEST, 0, 0)).isInstanceOf(DeviceOutOfMemoryException.class);
            refusing.close();
            return 0;
        });
        refused(memory);
        assertThat(refusing.isDrained()).isTrue();
    }

    // Calls of the driver that need memory.

    private static CudaException refusal(CudaResult result) {
        return new CudaException(DriverCall.GRAPH_LAUNCH, result.code(), "in a test");
    }

    /// Fails, and succeeds from the given time on.
    private static final class DriverWork implements Runnable {
        private final int succeedsAt;
        private final CudaResult failure;
        int times;

        DriverWork(int succeedsAt, CudaResult failure) {
            this.succeedsAt = succeedsAt;
            this.failure = failure;
        }

        @Override
        public void run() {
            if (++times < succeedsAt) {
                throw refusal(failure);
            }
        }
    }

    private static void callAgain(DeviceMemory memory, DriverWork work) {
        memory.outOfMemory.callAgain(refusal(CudaResult.OUT_OF_MEMORY), 0, REQUEST, 0, "a launch", work);
    }

    @Test
    void aDriverCallIsMadeAgainAfterAStepThatGave() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS, ReclaimStep.SPILL, ReclaimStep.LENDING));
        memory.listeners().onMemoryPressure(ReclaimStep.SPILL, (_, _) -> 10);
        DriverWork work = new DriverWork(2, CudaResult.OUT_OF_MEMORY);
        callAgain(memory, work);
        assertThat(work.times).isEqualTo(2);
        assertThat(own.requests).isZero();
    }

    @Test
    void aDriverCallThatNothingHelpsIsOutOfMemory() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS, ReclaimStep.LENDING));
        memory.listeners().onMemoryPressure((_, _) -> 0);
        DriverWork work = new DriverWork(100, CudaResult.OUT_OF_MEMORY);
        assertThatThrownBy(() -> callAgain(memory, work))
                .isInstanceOfSatisfying(DeviceOutOfMemoryException.class, refusal -> {
                    assertThat(refusal.steps()).extracting(TriedStep::step).containsExactly(ReclaimStep.CALLBACKS);
                    assertThat(refusal.byteSize()).isEqualTo(REQUEST);
                })
                .hasMessageContaining("a launch")
                .hasCauseInstanceOf(CudaException.class);
        assertThat(work.times).as("once more at the end").isEqualTo(1);
    }

    @Test
    void anotherFailureOfADriverCallReachesTheCaller() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        assertThatThrownBy(() -> callAgain(memory, new DriverWork(100, CudaResult.ILLEGAL_ADDRESS)))
                .isInstanceOfSatisfying(
                        CudaException.class,
                        failure -> assertThat(failure.result()).isEqualTo(CudaResult.ILLEGAL_ADDRESS));
        CudaException first = refusal(CudaResult.INVALID_VALUE);
        assertThatThrownBy(() -> memory.outOfMemory.callAgain(first, 0, REQUEST, 0, "a launch", () -> {}))
                .isSameAs(first);
    }

    @Test
    void aDriverCallGoesOnWithTheNextAllocator() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS, ReclaimStep.TRIM));
        memory.listeners().onMemoryPressure((_, _) -> {
            Allocator former = memory.current(0);
            memory.currents().set(memory.allocators().getLast());
            Thread.ofPlatform().start(former::close); // a listener can't close the allocator that it is asked for
            while (!former.isDrained()) {
                Thread.onSpinWait();
            }
            return 10;
        });
        DriverWork work = new DriverWork(2, CudaResult.OUT_OF_MEMORY);
        callAgain(memory, work);
        assertThat(work.times).isEqualTo(2);
        assertThat(calls).containsExactly("other TRIM");
    }

    @Test
    void aDriverCallIsNotMadeAgainInAClosedDeviceMemory() {
        DeviceMemory memory = open(Set.of(ReclaimStep.CALLBACKS));
        memory.close();
        DriverWork work = new DriverWork(1, CudaResult.OUT_OF_MEMORY);
        assertThatThrownBy(() -> callAgain(memory, work)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(work.times).isZero();
    }
}
