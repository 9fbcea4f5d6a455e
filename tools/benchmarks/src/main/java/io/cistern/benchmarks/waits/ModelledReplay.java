package io.cistern.benchmarks.waits;

import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.stream.IntStream;

/// A replay of a trace with an allocator, in which each block is filled once, and what its last pass takes on a
/// [busy GPU][BusyGpu]. Where pages lie and who waits for whom is decided on the simulated GPU.
final class ModelledReplay implements AutoCloseable {
    /// A row and its share of misses, on the hosts of the H200s that were measured.
    static final double HOST_ROW_NANOS = 300;

    private static final int PASSES = 8;
    private static final int DEVICE = 0;

    private record Block(TraceRow row, long address) {}

    private final List<TraceRow> rows;
    private final SimulatedGpu gpu;
    private final List<Long> streams;
    private final WatchedDriver watched;
    private final DeviceMemory memory;
    private final Map<Long, Block> live = new HashMap<>();
    private final long freeBytesAtFirst;

    ModelledReplay(List<TraceRow> rows, int streamCount, String spec) {
        this.rows = rows;
        gpu = SimulatedGpu.builder().devices(1).build();
        streams = IntStream.range(0, streamCount)
                .mapToObj(_ -> gpu.streams().create(DEVICE))
                .toList();
        watched = new WatchedDriver(gpu, streams);
        memory = DeviceMemory.builder(watched.driver())
                .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
                .open();
        memory.setCurrent(spec);
        freeBytesAtFirst = gpu.memory().freeBytes(DEVICE);
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    /// What the last pass took.
    ///
    /// @param driverCalls what the allocator asked of the driver
    /// @param reservedBytes what it had from the driver in the end
    record Pass(double nanos, long driverCalls, long reservedBytes) {}

    Pass lastPass() {
        BusyGpu busy = new BusyGpu(streams.size());
        long calls = 0;
        for (int i = 0; i < PASSES; i++) {
            busy = new BusyGpu(streams.size());
            watched.watch(busy);
            long before = gpu.calls().ofAllocators();
            walk(busy);
            calls = gpu.calls().ofAllocators() - before;
            gpu.devices().synchronize(DEVICE);
            List.copyOf(live.values()).forEach(block -> free(block.row()));
        }
        return new Pass(busy.finish(), calls, freeBytesAtFirst - gpu.memory().freeBytes(DEVICE));
    }

    private void walk(BusyGpu busy) {
        for (TraceRow row : rows) {
            busy.spend(HOST_ROW_NANOS);
            if (row.allocates()) {
                allocate(row, busy);
            } else {
                free(row);
            }
        }
    }

    private void allocate(TraceRow row, BusyGpu busy) {
        long stream = streams.get(row.stream());
        long address = memory.allocate(row.byteSize(), DEVICE, stream);
        live.put(row.id(), new Block(row, address));
        if (row.byteSize() > 0) {
            gpu.copies().fillBytes(DEVICE, address, (byte) 1, row.byteSize(), stream);
            busy.fill(row.stream(), row.byteSize());
        }
    }

    private void free(TraceRow row) {
        long address = Objects.requireNonNull(live.remove(row.id())).address();
        memory.free(address, streams.get(row.stream()));
    }

    @Override
    public void close() {
        memory.close();
        gpu.close();
    }
}
