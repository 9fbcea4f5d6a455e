package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.nvrtc.Nvrtc;
import io.cistern.internal.names.UntilDone;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/// Kernels that are loaded into a device, from PTX text or, if NVIDIA's run-time compiler is installed, from
/// CUDA C++.
///
/// ```java
/// try (CudaModule module = CudaModule.load(memory, 0, ptx)) {
///     CudaFunction add = module.function("vector_add");
///     add.launch(blocks, 256, stream, x, y, sum, count);
/// }
/// ```
///
/// A simulated GPU does not run PTX. It runs the Java function that is registered under the kernel's name;
/// if there is none, [#function] throws.
///
/// **Threads.** Any thread may call any method at any time.
public final class CudaModule implements AutoCloseable {
    private final DeviceMemory memory;
    private final int device;
    private final long handle;
    private volatile boolean closed;

    private final UntilDone unloaded = new UntilDone();

    private CudaModule(DeviceMemory memory, int device, long handle) {
        this.memory = memory;
        this.device = device;
        this.handle = handle;
    }

    /// Loads kernels from PTX text.
    ///
    /// @param device the device's ordinal
    /// @param ptx the PTX text
    /// @throws CudaException if the driver does not accept the text
    public static CudaModule load(DeviceMemory memory, int device, String ptx) {
        Objects.requireNonNull(ptx, "ptx");
        return new CudaModule(memory, device, memory.driver().modules().load(device, ptx));
    }

    /// Compiles CUDA C++ for a device and loads the kernels. Kernels declared `extern "C"` keep their names.
    ///
    /// @param device the device's ordinal
    /// @param source the CUDA C++ source
    /// @param options compiler options; without a `--gpu-architecture` or `-arch`, the device's architecture is
    ///     used
    /// @throws UnsupportedOperationException if the compiler is not installed
    /// @throws io.cistern.cuda.nvrtc.NvrtcException if the program does not compile, with the compiler's log
    /// @throws CudaException if the driver does not accept the compiled code
    public static CudaModule compile(DeviceMemory memory, int device, String source, String... options) {
        Objects.requireNonNull(source, "source");
        List<String> all = new ArrayList<>(options.length + 1);
        for (int i = 0; i < options.length; i++) {
            all.add(Objects.requireNonNull(options[i], "options[" + i + "]"));
        }
        if (all.stream().noneMatch(option -> option.startsWith("--gpu-architecture") || option.startsWith("-arch"))) {
            int capability =
                    memory.driver().capabilities().devices().get(device).computeCapability();
            all.add("--gpu-architecture=compute_" + capability);
        }
        return load(memory, device, Nvrtc.find().compile(source, "program.cu", all));
    }

    /// Returns a kernel of the module.
    ///
    /// @throws IllegalStateException if the module is closed
    /// @throws CudaException `NOT_FOUND` if the module has no such kernel, `NOT_SUPPORTED` if the device is
    ///     simulated and has no Java function of that name
    public CudaFunction function(String name) {
        if (closed) {
            throw new IllegalStateException("the module of kernel " + name + " is closed");
        }
        long function = memory.driver().modules().function(device, handle, Objects.requireNonNull(name, "name"));
        return new CudaFunction(this, memory, device, function, name);
    }

    boolean isClosed() {
        return closed;
    }

    /// Unloads the kernels. Before the call, wait until their launches have finished. Closing twice does
    /// nothing.
    ///
    /// @throws CudaException if the driver refuses; launches are rejected from then on, and another close tries
    ///     again
    @Override
    public void close() {
        closed = true;
        unloaded.run(() -> DeadContext.insist(() -> memory.driver().modules().unload(device, handle)));
    }
}
