package io.cistern.observability.nvtx;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// The three functions of NVTX that are used. The library's own calls are cheap and do nothing without a
/// profiler.
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

    /// The library of this process.
    ///
    /// @throws UnsupportedOperationException if there is none that can be used, with the reason
    static NvtxLibrary find() {
        return new NvtxLibrary(
                SharedLibrary.find("NVTX", Setting.NVTX_LIBRARY, "libnvToolsExt.so.1", "libnvtx3interop.so.1"));
    }

    /// Marks this moment.
    void mark(String text) {
        try (Arena arena = Arena.ofConfined()) {
            markA.invokeExact(arena.allocateFrom(text));
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxMarkA", failure);
        }
    }

    /// Begins a range, which may end on another thread.
    ///
    /// @return its id
    long start(String text) {
        try (Arena arena = Arena.ofConfined()) {
            return (long) rangeStartA.invokeExact(arena.allocateFrom(text));
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxRangeStartA", failure);
        }
    }

    /// Ends a range.
    void end(long id) {
        try {
            rangeEnd.invokeExact(id);
        } catch (Throwable failure) {
            throw new IllegalStateException("nvtxRangeEnd", failure);
        }
    }
}
