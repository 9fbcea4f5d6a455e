package io.cistern.examples.spark.engine;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.CudaFunction;
import io.cistern.buffers.CudaModule;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/// Loads the kernels of [Operators] once into each device: compiled from CUDA C++ on a real device, Java
/// functions on a simulated one.
final class EngineKernels {
    private static final String SOURCE = "operators.cu";
    private static final Pattern KERNEL = Pattern.compile("KERNEL (\\w+)\\(");
    private static final int THREADS = 256;
    private static final int MAX_BLOCKS = 1 << 12;

    private final Map<String, CudaFunction> functions = new ConcurrentHashMap<>();

    /// The loaded kernels of one device memory, by device.
    private static final class Loaded implements AutoCloseable {
        private final Map<Integer, CudaModule> modules = new ConcurrentHashMap<>();
        private final Map<Integer, EngineKernels> kernels = new ConcurrentHashMap<>();

        EngineKernels on(DeviceMemory memory, int device) {
            return kernels.computeIfAbsent(
                    device, _ -> new EngineKernels(modules.computeIfAbsent(device, _ -> load(memory, device))));
        }

        @Override
        public void close() {
            modules.values().forEach(CudaModule::close);
        }
    }

    private EngineKernels(CudaModule module) {
        names().forEach(name -> functions.put(name, module.function(name)));
    }

    /// Returns the kernels of a device.
    ///
    /// @throws UnsupportedOperationException if the device is real and NVIDIA's run-time compiler is
    ///     missing
    static EngineKernels of(DeviceMemory memory, int device) {
        return memory.moduleSupport()
                .attachment(Loaded.class, _ -> new Loaded())
                .on(memory, device);
    }

    private static CudaModule load(DeviceMemory memory, int device) {
        return memory.driver().simulated()
                ? CudaModule.load(memory, device, entries())
                : CudaModule.compile(memory, device, source());
    }

    /// Returns PTX that declares the names, for a simulated device.
    private static String entries() {
        StringBuilder text = new StringBuilder(".version 8.0\n.target sm_90\n.address_size 64\n");
        names().forEach(name -> text.append(".entry ").append(name).append("() { ret; }\n"));
        return text.toString();
    }

    private static List<String> names() {
        return KERNEL.matcher(source()).results().map(kernel -> kernel.group(1)).toList();
    }

    private static String source() {
        try (InputStream source = EngineKernels.class.getResourceAsStream(SOURCE)) {
            if (source == null) {
                throw new IllegalStateException(SOURCE + " is missing next to " + EngineKernels.class);
            }
            return new String(source.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// Launches a kernel with one thread for each item, or fewer that take several.
    void launch(String name, CudaStream stream, long items, Object... arguments) {
        CudaFunction function = functions.get(name);
        if (function == null) {
            throw new IllegalArgumentException("there is no kernel " + name);
        }
        int blocks = Math.clamp((items + THREADS - 1) / THREADS, 1, MAX_BLOCKS);
        function.launch(blocks, THREADS, stream, arguments);
    }
}
