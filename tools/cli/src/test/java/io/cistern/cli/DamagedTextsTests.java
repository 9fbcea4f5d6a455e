package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Texts that programs and environments give may be damaged: specs of allocators, strings of PyTorch, numbers of bytes,
/// and PTX for the simulated GPU. A damaged text is either legal, too, or refused by the exception that is meant for
/// it, in bounded time. The property `cistern.testkit.texts` says how many are drawn of each.
final class DamagedTextsTests {
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);
    private static final int USUAL = 20;
    private static final int MANY = 2000;
    private static final String COUNT = "cistern.testkit.texts";
    private static final long MAX_NANOS = TimeUnit.SECONDS.toNanos(20);

    private static final List<String> PYTORCH = List.of(
            "expandable_segments:True",
            "max_split_size_mb:128,garbage_collection_threshold:0.8",
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
            "backend:cudaMallocAsync",
            "expandable_segments:False,pinned_use_cuda_host_register:True,pinned_num_register_threads:8",
            "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.9");

    private static final List<String> SIZES = List.of("8g", "512MiB", "0.5", "50%", "1048576000", "2GiB", "65536k");

    private int executions;

    @Test
    void someDamagedTextsAreRefusedAsTheyShould() {
        damageAll(Integer.getInteger(COUNT, USUAL));
    }

    @Test
    @Tag("long")
    void manyDamagedTextsAreRefusedAsTheyShould() {
        damageAll(Integer.getInteger(COUNT, MANY));
    }

    private void damageAll(int count) {
        long begun = System.nanoTime();
        try (SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            List<String> specs = new ArrayList<>(EverySpec.list());
            specs.forEach(spec -> damage(spec, count, text -> open(memory, text)));
            PYTORCH.forEach(line -> damage(line, 10 * count, text -> open(memory, inQuotes(text))));
            SIZES.forEach(size -> damage(size, 10 * count, text -> open(memory, "caching:max_bytes=" + text)));
            damage(
                    MemoryKernels.ptx(),
                    20 * count,
                    text -> unload(gpu, gpu.modules().load(0, text)));
            assertThat(memory.allocators()).as("what a refused spec left open").isEmpty();
        }
        System.getLogger(DamagedTextsTests.class.getName())
                .log(
                        System.Logger.Level.INFO,
                        executions + " texts in " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begun) + " s");
    }

    private static void open(DeviceMemory memory, String spec) {
        if (!spec.contains("file=")) { // a damaged name of a file is the name of another file
            memory.open(spec).close();
        }
    }

    private static String inQuotes(String text) {
        return "caching:pytorch=\"" + text + '"';
    }

    private static void unload(SimulatedGpu gpu, long module) {
        gpu.modules().unload(0, module);
    }

    private void damage(String sample, int count, Consumer<String> reader) {
        reader.accept(sample);
        byte[] whole = sample.getBytes(StandardCharsets.UTF_8);
        int number = 0;
        for (byte[] damaged : (Iterable<byte[]>) Damage.of(whole, SEED, count)::iterator) {
            String text = new String(damaged, StandardCharsets.UTF_8);
            String which = "number " + number++ + " of seed " + SEED + ": " + text;
            long begun = System.nanoTime();
            try {
                reader.accept(text);
            } catch (ConfigurationException refused) {
                assertThat(refused.getMessage()).as(which).isNotBlank();
            } catch (CudaException | DeviceOutOfMemoryException refused) {
                assertThat(refused).as(which).isNotNull(); // legal, but too much for this device, or no PTX
            } catch (RuntimeException | Error other) {
                throw new AssertionError(which, other);
            }
            executions++;
            assertThat(System.nanoTime() - begun).as(which).isLessThan(MAX_NANOS);
        }
    }
}
