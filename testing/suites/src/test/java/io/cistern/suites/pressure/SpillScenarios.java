package io.cistern.suites.pressure;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.pressure.Retry;
import io.cistern.pressure.SpillStatistics;
import io.cistern.pressure.SpillStore;
import io.cistern.pressure.SpillableBuffer;
import io.cistern.pressure.TaskArbiter;
import io.cistern.testkit.DiscoveredCatalog;
import io.cistern.testkit.Seed;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/// Runs tasks that use their spillable buffers in an order drawn from a seed. The device holds a sixth of the
/// bytes, the host another twelfth, and files the rest, so the tasks spill even if they run one after the
/// other. The contents of a buffer are checked on each use.
final class SpillScenarios {
    private static final int DEVICE = 0;
    private static final int TASKS = 4;
    private static final int BUFFERS = 10;
    private static final int WANTED = 6;

    private final CudaDriver driver;
    private final DeviceMemory memory;
    private final TaskArbiter arbiter;
    private final MemoryKernels kernels;
    private final SpillStore store;
    private final long averageBytes;

    /// Counts words that differ; pinned.
    private final MemorySegment mismatches;

    private SpillScenarios(DeviceMemory memory, MemoryKernels kernels, String spec, long capacityBytes, Path files) {
        this.driver = memory.driver();
        this.memory = memory;
        this.kernels = kernels;
        Allocator allocator = memory.setCurrent(spec);
        arbiter = allocator.extension(TaskArbiter.class).orElseThrow();
        store = SpillStore.open(memory, arbiter, capacityBytes / 2, files);
        averageBytes = WANTED * capacityBytes / (TASKS * BUFFERS);
        mismatches = driver.memory().allocateHost(DEVICE, Long.BYTES).fill((byte) 0);
    }

    /// Runs one scenario to its end.
    ///
    /// @param upstream a spec of an allocator with `capacityBytes`
    /// @param uses how often each task uses one of its buffers
    /// @throws IllegalStateException if a task fails, or a buffer has other bytes than were written
    static SpillStatistics run(CudaDriver driver, String upstream, long capacityBytes, int uses, long seed)
            throws IOException {
        Path files = Files.createTempDirectory("cistern-spill-");
        try (MemoryKernels kernels = MemoryKernels.load(driver, DEVICE);
                DeviceMemory memory = DeviceMemory.builder(driver)
                        .catalog(DiscoveredCatalog.find())
                        .open()) {
            SpillScenarios scenario =
                    new SpillScenarios(memory, kernels, TaskScenarios.arbiterOver(upstream), capacityBytes, files);
            return scenario.run(uses, seed);
        } finally {
            Files.delete(files); // fails unless it is empty
        }
    }

    private SpillStatistics run(int uses, long seed) {
        List<FutureTask<Boolean>> running = new ArrayList<>();
        for (int id = 0; id < TASKS; id++) {
            Random random = new Random(seed + id);
            int priority = id;
            FutureTask<Boolean> task =
                    new FutureTask<>(() -> arbiter.task(priority, priority).run(() -> use(random, uses)), true);
            Thread.ofVirtual().name("task " + id).start(task);
            running.add(task);
        }
        running.forEach(SpillScenarios::await);
        driver.devices().synchronize(DEVICE);
        long different = mismatches.get(ValueLayout.JAVA_LONG, 0);
        SpillStatistics told = store.statistics();
        store.close();
        driver.memory().freeHost(DEVICE, mismatches);
        if (different != 0) {
            throw new IllegalStateException(different + " words differ, " + Seed.describe(seed));
        }
        return told;
    }

    private static void await(FutureTask<Boolean> task) {
        try {
            task.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a task failed", e.getCause());
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void use(Random random, int uses) {
        long stream = driver.streams().create(DEVICE);
        List<SpillableBuffer> buffers = new ArrayList<>();
        int[] patterns = random.ints(BUFFERS).toArray();
        for (int i = 0; i < BUFFERS; i++) {
            long byteSize = Math.max(Integer.BYTES, 2 * (long) (averageBytes * random.nextDouble()) & -Integer.BYTES);
            int priority = i % 3;
            buffers.add(Retry.withRetry(() -> store.allocate(byteSize, DEVICE, stream, priority)));
            use(buffers.get(i), patterns[i], true, stream);
        }
        for (int i = 0; i < uses; i++) {
            int which = random.nextInt(BUFFERS);
            boolean writes = random.nextBoolean();
            use(buffers.get(which), patterns[which], false, stream);
            if (writes) {
                patterns[which] = random.nextInt();
                use(buffers.get(which), patterns[which], true, stream);
            }
        }
        buffers.forEach(SpillableBuffer::close);
        driver.streams().synchronize(DEVICE, stream);
        memory.streamClosing(DEVICE, stream);
        driver.streams().destroy(DEVICE, stream);
    }

    private void use(SpillableBuffer buffer, int pattern, boolean writes, long stream) {
        long words = buffer.byteSize() / Integer.BYTES;
        Retry.withRetry(() -> {
            try (SpillableBuffer.Lease lease = buffer.acquire(stream)) {
                if (writes) {
                    driver.copies().fillWords(DEVICE, lease.address(), pattern, words, stream);
                } else {
                    kernels.countMismatches(lease.address(), words, pattern, mismatches.address(), stream);
                }
            }
            return true;
        });
    }
}
