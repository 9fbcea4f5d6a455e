package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.time.Duration;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;

/// A simulated GPU on which an arbiter has exactly 100 bytes to give.
final class SmallGpu implements AutoCloseable {
    static final long CAPACITY = 100;
    static final Duration PATIENCE = Duration.ofMillis(2);

    final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(1L << 30).build();
    final DeviceMemory memory = DeviceMemory.builder(gpu).catalog(catalog()).open();
    final Allocator allocator = memory.setCurrent("arbiter:patience_millis=" + PATIENCE.toMillis()
            + ",upstream=\"limit:bytes=" + CAPACITY + ",upstream=direct\"");
    final TaskArbiter arbiter = allocator.extension(TaskArbiter.class).orElseThrow();

    static Catalog catalog() {
        return Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class));
    }

    private static <T> List<T> all(Class<T> type) {
        return ServiceLoader.load(type).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    long allocate(long byteSize) {
        return memory.allocate(byteSize, 0, 0);
    }

    void free(long address) {
        memory.free(address, 0);
    }

    /// Runs something as a thread of a task.
    <T> FutureTask<T> start(Task task, Callable<T> work) {
        FutureTask<T> future = new FutureTask<>(() -> task.call(work::call));
        Thread.ofVirtual().name("of " + task).start(future);
        return future;
    }

    /// Returns once some thread of a task is in a state.
    void await(Task task, ThreadState state) {
        while (arbiter.threads().stream()
                .noneMatch(line -> line.startsWith(task.toString()) && line.contains(state.toString()))) {
            LockSupport.parkNanos(100_000);
        }
    }

    @Override
    public void close() {
        arbiter.checkInvariants();
        assertThat(arbiter.threads()).isEmpty();
        assertThat(arbiter.ownedBlocks()).isZero();
        assertThat(allocator.statistics(0).liveBlocks()).isZero();
        memory.close();
        gpu.close();
    }
}
