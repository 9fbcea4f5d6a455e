package io.cistern.examples.spark.columns;

import io.cistern.DeviceMemory;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import io.cistern.spark.TaskMemory;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Loads the kernels of [KeyedSums] once into each device: compiled from CUDA C++ on a real device, Java
/// functions on a simulated one.
final class KeyedSumKernels {
    private static final String SOURCE = "keyed-sums.cu";
    private static final int THREADS = 256;
    private static final int MAX_BLOCKS = 1 << 16;

    static final String FILTER = "cistern_filter";
    static final String AGGREGATE = "cistern_aggregate";
    static final String COMPACT = "cistern_compact";
    static final String SORT_STEP = "cistern_sort_step";
    static final String FILL_LONGS = "cistern_fill_longs";
    private static final List<String> NAMES = List.of(FILTER, AGGREGATE, COMPACT, SORT_STEP, FILL_LONGS);

    private final Map<String, CudaFunction> functions = new ConcurrentHashMap<>();

    /// The loaded kernels of one device memory, by device.
    private static final class Loaded implements AutoCloseable {
        private final Map<Integer, CudaModule> modules = new ConcurrentHashMap<>();
        private final Map<Integer, KeyedSumKernels> kernels = new ConcurrentHashMap<>();

        KeyedSumKernels on(DeviceMemory memory, int device) {
            return kernels.computeIfAbsent(
                    device, _ -> new KeyedSumKernels(modules.computeIfAbsent(device, _ -> load(memory, device))));
        }

        @Override
        public void close() {
            modules.values().forEach(CudaModule::close);
        }
    }

    private KeyedSumKernels(CudaModule module) {
        NAMES.forEach(name -> functions.put(name, module.function(name)));
    }

    /// Returns the kernels of a task's device.
    ///
    /// @throws UnsupportedOperationException if the device is real and NVIDIA's run-time compiler is missing
    static KeyedSumKernels of(TaskMemory memory) {
        return memory.memory()
                .moduleSupport()
                .attachment(Loaded.class, _ -> new Loaded())
                .on(memory.memory(), memory.device());
    }

    private static CudaModule load(DeviceMemory memory, int device) {
        return memory.driver().simulated()
                ? CudaModule.load(memory, device, entries())
                : CudaModule.compile(memory, device, source());
    }

    /// Returns PTX that declares the names, for a simulated device.
    private static String entries() {
        StringBuilder text = new StringBuilder(".version 8.0\n.target sm_90\n.address_size 64\n");
        NAMES.forEach(name -> text.append(".entry ").append(name).append("() { ret; }\n"));
        return text.toString();
    }

    private static String source() {
        try (InputStream source = KeyedSumKernels.class.getResourceAsStream(SOURCE)) {
            if (source == null) {
                throw new IllegalStateException(SOURCE + " is missing beside " + KeyedSumKernels.class);
            }
            return new String(source.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Launches a kernel with one thread for each item.
    void launch(String name, TaskMemory memory, long items, Object... arguments) {
        CudaFunction function = functions.get(name);
        if (function == null) {
            throw new IllegalArgumentException("there is no kernel " + name);
        }
        int blocks = Math.clamp((items + THREADS - 1) / THREADS, 1, MAX_BLOCKS);
        function.launch(blocks, THREADS, memory.stream(), arguments);
    }
}
