package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.Listeners;
import io.cistern.MemoryMeasure;
import io.cistern.Registration;
import io.cistern.adaptors.AllocationListener;
import io.cistern.adaptors.EventAllocator;
import io.cistern.cli.common.Plugins;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// One listener that is registered twice: each registration is closed alone, as often as one likes.
final class RegisteredTwiceTests {
    private static final long CAPACITY = 64 << 20;

    /// @param register registers a listener that counts its calls; all calls of it register the same object
    /// @param cause makes what it listens to happen
    private record Kind(
            String name, BiFunction<DeviceMemory, Semaphore, Registering> register, Consumer<DeviceMemory> cause) {
        @Override
        public String toString() {
            return name;
        }
    }

    private interface Registering {
        Registration again();
    }

    static List<Kind> kinds() {
        return List.of(
                new Kind(
                        "event",
                        (memory, calls) -> {
                            Consumer<MemoryEvent> listener = _ -> calls.release();
                            return () -> memory.listeners().onEvent(listener);
                        },
                        memory -> memory.listeners().annotate("now")),
                new Kind(
                        "rare event",
                        (memory, calls) -> {
                            Consumer<MemoryEvent> listener = _ -> calls.release();
                            return () -> memory.listeners().onRareEvent(listener);
                        },
                        memory -> memory.listeners().annotate("now")),
                new Kind(
                        "stream closing",
                        (memory, calls) -> {
                            Listeners.StreamClosing listener = (_, _) -> calls.release();
                            return () -> memory.listeners().onStreamClosing(listener);
                        },
                        memory -> CudaStream.open(memory, 0).close()),
                new Kind(
                        "pressure",
                        (memory, calls) -> pressure(memory, ReclaimStep.CALLBACKS, calls),
                        RegisteredTwiceTests::runOut),
                new Kind(
                        "spill",
                        (memory, calls) -> pressure(memory, ReclaimStep.SPILL, calls),
                        RegisteredTwiceTests::runOut),
                new Kind(
                        "compaction",
                        (memory, calls) -> {
                            Listeners.WorkPause pause = (_, _) -> {
                                calls.release();
                                return Optional.of(() -> {});
                            };
                            return () -> memory.listeners().onCompaction(pause);
                        },
                        RegisteredTwiceTests::compact),
                new Kind(
                        "threshold",
                        (memory, calls) -> {
                            Listeners.Threshold listener = (_, _, _) -> calls.release();
                            return () ->
                                    memory.listeners().onThreshold(0, MemoryMeasure.RESERVED, CAPACITY / 4, listener);
                        },
                        memory -> memory.free(memory.allocate(CAPACITY / 2, 0, 0), 0)),
                new Kind(
                        "over budget",
                        (memory, calls) -> {
                            Listeners.OverBudget listener = (_, _) -> calls.release();
                            ((SimulatedGpu) memory.driver()).setMemoryBudget(0, CAPACITY / 4);
                            return () -> memory.listeners().onOverBudget(0, listener);
                        },
                        memory -> memory.free(memory.allocate(CAPACITY / 2, 0, 0), 0)));
    }

    private static Registering pressure(DeviceMemory memory, ReclaimStep step, Semaphore calls) {
        Listeners.MemoryPressure listener = (_, _) -> {
            calls.release();
            return 0;
        };
        return () -> memory.listeners().onMemoryPressure(step, listener);
    }

    private static void runOut(DeviceMemory memory) {
        long library = memory.driver().memory().allocate(0, CAPACITY / 2);
        try {
            memory.free(memory.allocate(CAPACITY, 0, 0), 0);
        } catch (DeviceOutOfMemoryException expected) {
            return;
        } finally {
            memory.driver().memory().free(0, library);
        }
        throw new AssertionError("more than the device has was served");
    }

    private static void compact(DeviceMemory memory) {
        long[] blocks = new long[8];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = memory.allocate(5 << 20, 0, 0);
        }
        for (int i = 0; i < blocks.length; i += 2) {
            memory.free(blocks[i], 0);
        }
        memory.current(0).compact(0);
        for (int i = 1; i < blocks.length; i += 2) {
            memory.free(blocks[i], 0);
        }
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void theOtherRegistrationStays(Kind kind) throws InterruptedException {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(CAPACITY).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            Semaphore calls = new Semaphore(0);
            Registering registering = kind.register.apply(memory, calls);
            Registration first = registering.again();
            Registration second = registering.again();
            first.close();
            first.close();
            kind.cause.accept(memory);
            assertThat(calls.tryAcquire(10, TimeUnit.SECONDS)).isTrue();
            second.close();
            second.close();
        }
    }

    @org.junit.jupiter.api.Test
    void theOtherRegistrationWithAnEventAllocatorStays() {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(CAPACITY).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            Allocator caching = memory.open("caching");
            Semaphore calls = new Semaphore(0);
            AllocationListener listener = new AllocationListener() {
                @Override
                public void allocated(long address, long byteSize, int device, long stream) {
                    calls.release();
                }
            };
            EventAllocator events = new EventAllocator(caching.asUpstream(), new AllocationListener() {});
            Registration first = events.addListener(listener);
            Registration second = events.addListener(listener);
            first.close();
            first.close();
            events.free(events.allocate(4096, 0, 0), 4096, 0, 0);
            assertThat(calls.availablePermits()).isOne();
            second.close();
            events.free(events.allocate(4096, 0, 0), 4096, 0, 0);
            assertThat(calls.availablePermits()).isOne();
        }
    }
}
