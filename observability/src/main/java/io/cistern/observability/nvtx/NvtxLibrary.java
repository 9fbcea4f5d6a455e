package io.cistern.observability.nvtx;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// Binds the three functions of NVTX that are used. Without a profiler they are cheap and do nothing.
///
/// **Threads.** Any.
final class NvtxLibrary {
    private final MethodHandle markA;
    private final MethodHandle rangeStartA;
    private final MethodHandle rangeEnd;

    private NvtxLibrary(SharedLibrary library) {
        markA = library.function("nvtxMarkA", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
        rangeStartA =
                library.function("nvtxRangeStartA", FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        rangeEnd = library.function("nvtxRangeEnd", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
    }

    /// Returns the NVTX library of this process.
    ///
    /// @throws UnsupportedOperationException if no usable library is found, with the reason
    static NvtxLibrary find() {
        return new NvtxLibrary(
                SharedLibrary.find("NVTX", Setting.NVTX_LIBRARY, "libnvToolsExt.so.1", "libnvtx3interop.so.1"));
    }

    void mark(String text) {
        try (Arena arena = Arena.ofConfined()) {
            markA.invokeExact(arena.allocateFrom(text));
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxMarkA", failure);
        }
    }

    /// Begins a range. Another thread may end it.
    ///
    /// @return the range's id
    long start(String text) {
        try (Arena arena = Arena.ofConfined()) {
            return (long) rangeStartA.invokeExact(arena.allocateFrom(text));
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxRangeStartA", failure);
        }
    }

    void end(long id) {
        try {
            rangeEnd.invokeExact(id);
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxRangeEnd", failure);
        }
    }
}
