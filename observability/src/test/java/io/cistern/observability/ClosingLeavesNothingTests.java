package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.jvm.ClosingTypes;
import io.cistern.jvm.Cycles;
import io.cistern.observability.jfr.FlightEvents;
import io.cistern.observability.jmx.MemoryBeans;
import io.cistern.observability.nvtx.NvtxRanges;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What observes device memory, opened and closed again and again: on a device memory that stays, and with device
/// memory that closes first.
final class ClosingLeavesNothingTests extends ObservedMemory {
    private static final int TIMES = 200;

    @TempDir
    private static Path folder;

    /// Opens something on a device memory.
    interface Opening {
        AutoCloseable open(DeviceMemory memory);
    }

    private static final Map<Class<?>, Opening> OPENINGS = Map.of(
            MemoryPeaks.class, memory -> MemoryPeaks.open(memory, DEVICE),
            MemoryProfiler.class, MemoryProfiler::open,
            MemoryProfiler.Call.class, ClosingLeavesNothingTests::call,
            MemoryHistory.class, ClosingLeavesNothingTests::history,
            OutOfMemorySnapshots.class, memory -> OutOfMemorySnapshots.writeTo(memory, folder, 1),
            MemorySnapshot.class, _ -> MemorySnapshot.schema(),
            MemoryBeans.class, MemoryBeans::register,
            FlightEvents.class, FlightEvents::register,
            NvtxRanges.class, NvtxRanges::register);

    private static AutoCloseable call(DeviceMemory memory) {
        MemoryProfiler profiler = MemoryProfiler.open(memory);
        MemoryProfiler.Call call = profiler.begin("step");
        return () -> {
            call.close();
            profiler.close();
        };
    }

    private static AutoCloseable history(DeviceMemory memory) {
        MemoryHistory history = MemoryHistory.of(memory);
        history.start(HistoryOptions.withStacks());
        return history::stop;
    }

    static Stream<Class<?>> types() throws Exception {
        return ClosingTypes.beside(MemoryPeaks.class).stream();
    }

    private static void use(DeviceMemory memory) {
        try (Scope _ = memory.current(DEVICE).enter()) {
            memory.free(memory.allocate(1000, DEVICE, 0), 0);
        }
        memory.listeners().annotate("step");
        memory.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
    }

    @ParameterizedTest
    @MethodSource("types")
    void onDeviceMemoryThatStays(Class<?> type) throws Exception {
        Opening opening = OPENINGS.get(type);
        assertThat(opening).as("a way to open " + type).isNotNull();
        Cycles.assertNothingStays(TIMES, () -> {
            try (AutoCloseable _ = opening.open(memory)) {
                use(memory);
            }
        });
    }

    @ParameterizedTest
    @MethodSource("types")
    void withDeviceMemoryThatClosesFirst(Class<?> type) throws Exception {
        Opening opening = OPENINGS.get(type);
        SimulatedGpu machine = SimulatedGpu.builder().devices(1).build();
        Cycles.assertNothingStays(TIMES, () -> {
            AutoCloseable opened;
            try (DeviceMemory closed =
                    DeviceMemory.builder(machine).catalog(found()).open()) {
                closed.setCurrent("direct");
                opened = opening.open(closed);
                use(closed);
            }
            opened.close();
        });
        machine.close();
    }
}
