package io.cistern.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/// Asks NVIDIA's management library NVML (`libnvidia-ml.so.1`), if installed, which other processes hold
/// memory of a device. NVML is initialised for each query and shut down afterwards: queries are rare, and
/// NVML keeps driver files open until it is shut down.
///
/// ```
/// nvmlProcessInfo_t   pid 0 (int) · usedGpuMemory 8 (long, −1 unknown) · gpuInstanceId 16 · computeInstanceId 20
/// ```
public final class DeviceProcesses {
    /// The memory of a device that one process holds.
    ///
    /// @param processId its process ID, as NVML reports it; in a container it may be the ID on the host
    /// @param byteSize bytes of device memory; −1 if the system does not report it
    public record Holding(long processId, long byteSize) {}

    private static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int MAX_PROCESSES = 256;
    private static final long INFO_BYTES = 24;
    private static final long USED = 8;

    private final MethodHandle init;
    private final MethodHandle shutdown;
    private final MethodHandle deviceByUuid;
    private final MethodHandle processes;

    @SuppressWarnings("restricted")
    private DeviceProcesses(Arena arena) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(LIBRARY, arena);
        init = handle(symbols, "nvmlInit_v2", FunctionDescriptor.of(JAVA_INT));
        shutdown = handle(symbols, "nvmlShutdown", FunctionDescriptor.of(JAVA_INT));
        deviceByUuid = handle(symbols, "nvmlDeviceGetHandleByUUID", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
        processes = handle(
                symbols,
                "nvmlDeviceGetComputeRunningProcesses_v3",
                FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS, ADDRESS));
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(SymbolLookup symbols, String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor);
    }

    /// Returns the other processes that hold memory of a device. Never throws. The list is empty on a simulated
    /// GPU, if NVML is not installed, and if NVML refuses to answer.
    public static List<Holding> others(CudaDriver driver, int device) {
        try {
            return driver.simulated() ? List.of() : ask(driver.devices().uuid(device));
        } catch (RuntimeException | LinkageError unavailable) {
            return List.of();
        }
    }

    private static List<Holding> ask(String uuid) {
        try (Arena arena = Arena.ofConfined()) {
            DeviceProcesses library = new DeviceProcesses(arena);
            require((int) library.init.invokeExact());
            try {
                return library.holdings(arena, uuid);
            } finally {
                require((int) library.shutdown.invokeExact());
            }
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable never) {
            throw new IllegalStateException(never);
        }
    }

    private List<Holding> holdings(Arena arena, String uuid) throws Throwable {
        MemorySegment device = arena.allocate(JAVA_LONG);
        require((int) deviceByUuid.invokeExact(arena.allocateFrom("GPU-" + uuid), device));
        MemorySegment count = arena.allocateFrom(JAVA_INT, MAX_PROCESSES);
        MemorySegment infos = arena.allocate(INFO_BYTES * MAX_PROCESSES, Long.BYTES);
        require((int) processes.invokeExact(device.get(JAVA_LONG, 0), count, infos));
        List<Holding> all = new ArrayList<>();
        for (int i = 0; i < count.get(JAVA_INT, 0); i++) {
            long process = Integer.toUnsignedLong(infos.get(JAVA_INT, i * INFO_BYTES));
            if (process != ProcessHandle.current().pid()) {
                all.add(new Holding(process, infos.get(JAVA_LONG, i * INFO_BYTES + USED)));
            }
        }
        return all;
    }

    private static void require(int code) {
        if (code != 0) {
            throw new IllegalStateException("NVML returned " + code);
        }
    }
}
