package io.cistern.simulated;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

final class ConcurrencyTests {
    @Test
    void manyVirtualThreadsKeepTheirDataApart() throws ExecutionException, InterruptedException {
        try (MachineFixture machine = MachineFixture.h200();
                var threads = Executors.newVirtualThreadPerTaskExecutor()) {
            SimulatedGpu gpu = machine.gpu;
            long free = gpu.memory().freeBytes(0);
            List<Future<?>> tasks = new ArrayList<>();
            for (int i = 0; i < 16; i++) {
                int seed = i;
                tasks.add(threads.submit(() -> work(gpu, new Random(seed), seed)));
            }
            for (Future<?> task : tasks) {
                task.get();
            }
            gpu.devices().synchronize(0);
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(free);
            assertThat(gpu.misuses()).isEmpty();
        }
    }

    private static void work(SimulatedGpu gpu, Random random, int value) {
        long stream = gpu.streams().create(0);
        try (java.lang.foreign.Arena arena = java.lang.foreign.Arena.ofConfined()) {
            var word = arena.allocate(4, 4);
            for (int i = 0; i < 200; i++) {
                long size = 4 * (1 + random.nextInt(100_000));
                boolean pooled = random.nextBoolean();
                long address = pooled
                        ? gpu.pools().allocate(0, size, stream)
                        : gpu.memory().allocate(0, size);
                gpu.copies().fillWords(0, address, value, size / 4, stream);
                gpu.copies().toHost(0, word, address + size - 4, 4, stream);
                assertThat(word.get(java.lang.foreign.ValueLayout.JAVA_INT, 0)).isEqualTo(value);
                if (pooled) {
                    gpu.pools().free(0, address, stream);
                } else {
                    gpu.memory().free(0, address);
                }
            }
        }
        gpu.streams().synchronize(0, stream);
        gpu.streams().destroy(0, stream);
    }
}
