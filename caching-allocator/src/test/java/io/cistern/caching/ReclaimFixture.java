package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.diagnostics.ReclaimStep;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;

/// A simulated GPU of 256 MiB with two streams, and device memory with some reclaim steps.
abstract class ReclaimFixture {
    static final int DEVICE = 0;
    static final long MIB = 1 << 20;
    static final long MOST = 200 * MIB;

    final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(256 * MIB).build();
    final long stream = gpu.streams().create(DEVICE);
    final long other = gpu.streams().create(DEVICE);
    private final Deque<DeviceMemory> opened = new ArrayDeque<>();

    /// A request that a situation makes only one step serve. What else the situation allocates is freed if it
    /// fails.
    interface Request {
        long in(DeviceMemory memory) throws InterruptedException;
    }

    @AfterEach
    void close() {
        opened.forEach(DeviceMemory::close);
        opened.clear();
        assertThat(gpu.misuses()).isEmpty();
        assertThat(gpu.heldObjects()).doesNotContainKey("events");
    }

    DeviceMemory open(Set<ReclaimStep> steps) {
        return open(DeviceMemory.builder(gpu).reclaimSteps(steps));
    }

    DeviceMemory open(DeviceMemory.Builder builder) {
        List<AllocatorProvider> allocators = ServiceLoader.load(AllocatorProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        List<SegmentSourceProvider> sources = ServiceLoader.load(SegmentSourceProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        DeviceMemory memory = builder.catalog(Catalog.of(allocators, sources)).open();
        opened.push(memory);
        return memory;
    }

    /// Fails with all steps but one, and not with all.
    void assertOnly(ReclaimStep step, Request request) throws InterruptedException {
        assertFails(EnumSet.complementOf(EnumSet.of(step)), request);
        assertServes(EnumSet.allOf(ReclaimStep.class), request);
    }

    /// Fails without any step, and not with this one alone.
    void assertAlone(ReclaimStep step, Request request) throws InterruptedException {
        assertFails(Set.of(), request);
        assertServes(EnumSet.of(step), request);
    }

    void assertFails(Set<ReclaimStep> steps, Request request) {
        DeviceMemory lacking = open(steps);
        assertThatThrownBy(() -> request.in(lacking)).isInstanceOf(DeviceOutOfMemoryException.class);
        close();
    }

    void assertServes(Set<ReclaimStep> steps, Request request) throws InterruptedException {
        DeviceMemory memory = open(steps);
        memory.free(request.in(memory), stream);
        close();
    }
}
