package io.cistern.benchmarks;

import io.cistern.CudaStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// The driver called with an array, which the library does not do: no safepoint can stop the thread meanwhile. If the
/// driver waits for work that waits for a Java thread, and a safepoint is wanted, all wait for ever.
@SuppressWarnings("restricted")
final class ArrayWithDriver {
    private final MethodHandle toDevice;

    ArrayWithDriver(String driver) {
        FunctionDescriptor shape = FunctionDescriptor.of(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_LONG,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG);
        MemorySegment function =
                SymbolLookup.libraryLookup(driver, Arena.global()).findOrThrow("cuMemcpyHtoDAsync_v2");
        toDevice = Linker.nativeLinker().downcallHandle(function, shape, Linker.Option.critical(true));
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
}
