package io.cistern.benchmarks.programs;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.DriverCall;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.ServiceLoader;

/// Replays a program several times through an allocator on a simulated GPU, like `cistern replay`.
final class ProgramReplay implements AutoCloseable {
    private static final int DEVICE = 0;
    /// A wait of the program makes two driver calls, which are not the allocator's.
    private static final int CALLS_A_WAIT = 2;

    /// The outcome of a replay.
    ///
    /// @param reservedPeakBytes the most bytes that the allocator had from the driver
    /// @param passes what the allocator asked of the driver in each pass
    record Outcome(long reservedPeakBytes, List<Calls> passes) {}

    /// The allocator's driver calls in one pass.
    ///
    /// @param all all of them
    /// @param maps those that gave a page an address
    record Calls(long all, long maps) {}

    private record Block(long address, long stream) {}

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();
    private final long event = gpu.events().create(DEVICE);
    private final Map<Long, Long> streams = new HashMap<>();
    private final Map<Long, Block> live = new HashMap<>();
    private final Allocator allocator;
    private long reservedPeakBytes;
    private long waits;

    private ProgramReplay(String spec) {
        memory.setCurrent(spec);
        allocator = memory.current(DEVICE);
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    static Outcome of(GeneratedProgram program, String spec, int passes) {
        try (ProgramReplay replay = new ProgramReplay(spec)) {
            List<Calls> calls = new ArrayList<>();
            for (int i = 0; i < passes; i++) {
                calls.add(replay.pass(program));
            }
            return new Outcome(replay.reservedPeakBytes(), calls);
        }
    }

    private Calls pass(GeneratedProgram program) {
        gpu.devices().synchronize(DEVICE);
        Calls before = calls();
        waits = 0;
        program.rows().forEach(this::run);
        Calls after = calls();
        gpu.devices().synchronize(DEVICE);
        Map.copyOf(live).forEach((id, block) -> free(id, block.stream()));
        return new Calls(after.all - before.all - CALLS_A_WAIT * waits, after.maps - before.maps);
    }

    private Calls calls() {
        return new Calls(gpu.calls().ofAllocators(), gpu.calls().of(DriverCall.MEM_MAP));
    }

    private void run(ProgramRow row) {
        long stream = stream(row.stream());
        switch (row.op()) {
            case 'a' -> allocate(row, stream);
            case 'f' -> free(row.id(), stream);
            case 'u' ->
                memory.recordUse(Objects.requireNonNull(live.get(row.id())).address(), stream);
            case 'w' -> await(stream, stream(row.id()));
            default -> memory.streamClosing(DEVICE, stream);
        }
    }

    private long stream(long number) {
        return streams.computeIfAbsent(number, _ -> gpu.streams().create(DEVICE));
    }

    private void allocate(ProgramRow row, long stream) {
        live.put(row.id(), new Block(memory.allocate(row.byteSize(), DEVICE, stream), stream));
        if (exactPeak().isEmpty()) {
            reservedPeakBytes =
                    Math.max(reservedPeakBytes, allocator.reservedBytes(DEVICE).orElse(0));
        }
    }

    private void free(long id, long stream) {
        memory.free(Objects.requireNonNull(live.remove(id)).address(), stream);
    }

    private void await(long stream, long awaited) {
        waits++;
        gpu.events().record(DEVICE, event, awaited);
        gpu.streams().await(DEVICE, stream, event);
    }

    private OptionalLong exactPeak() {
        return allocator
                .extension(MemoryStatistics.class)
                .map(own -> own.reservedPeakBytes(DEVICE))
                .orElse(OptionalLong.empty());
    }

    private long reservedPeakBytes() {
        return exactPeak().orElse(reservedPeakBytes);
    }

    @Override
    public void close() {
        memory.close();
        gpu.close();
    }
}
