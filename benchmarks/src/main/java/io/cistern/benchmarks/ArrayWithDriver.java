package io.cistern.benchmarks;

import io.cistern.CudaStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// Two things that the library does not do. The driver called with an array, whose thread no safepoint can stop
/// meanwhile: if the driver waits for work that waits for a Java thread, and a safepoint is wanted, all wait for ever.
/// And pinned memory that is write-combined.
@SuppressWarnings("restricted")
final class ArrayWithDriver {
    /// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED`
    private static final int WRITE_COMBINED = 1 | 4;

    private final MethodHandle toDevice;
    private final MethodHandle hostAlloc;

    ArrayWithDriver(String driver) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(driver, Arena.global());
        toDevice = Linker.nativeLinker()
                .downcallHandle(
                        symbols.findOrThrow("cuMemcpyHtoDAsync_v2"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG),
                        Linker.Option.critical(true));
        hostAlloc = Linker.nativeLinker()
                .downcallHandle(
                        symbols.findOrThrow("cuMemHostAlloc"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_INT));
    }

    /// The context must be current.
    void toDevice(long target, MemorySegment array, CudaStream stream) {
        int code;
        try {
            code = (int) toDevice.invokeExact(target, array, array.byteSize(), stream.handle());
        } catch (Throwable e) {
            throw LoopsInC.failed(e);
        }
        LoopsInC.checked(-code);
    }

    /// Stays until the process ends. The context must be current.
    MemorySegment writeCombined(long byteSize) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int code = (int) hostAlloc.invokeExact(out, byteSize, WRITE_COMBINED);
            LoopsInC.checked(-code);
            return out.get(ValueLayout.ADDRESS, 0).reinterpret(byteSize);
        } catch (Throwable e) {
            throw LoopsInC.failed(e);
        }
    }
}
