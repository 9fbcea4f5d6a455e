package io.cistern.observability.nvtx;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The three functions of NVTX that are used. The library's own calls are cheap and do nothing without a
/// profiler.
///
/// **Threads.** Any.
final class NvtxLibrary {
    private static final List<String> NAMES = List.of("libnvToolsExt.so.1", "libnvtx3interop.so.1");

    private final MethodHandle markA;
    private final MethodHandle rangeStartA;
    private final MethodHandle rangeEnd;

    @SuppressWarnings("restricted")
    private NvtxLibrary(SymbolLookup symbols) {
        Linker linker = Linker.nativeLinker();
        markA = linker.downcallHandle(symbols.findOrThrow("nvtxMarkA"), FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
        rangeStartA = linker.downcallHandle(
                symbols.findOrThrow("nvtxRangeStartA"),
                FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.ADDRESS));
        rangeEnd = linker.downcallHandle(
                symbols.findOrThrow("nvtxRangeEnd"), FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
    }

    /// The library of this process.
    ///
    /// @return null if there is none that can be used
    static @Nullable NvtxLibrary find() {
        for (String name : names()) {
            NvtxLibrary found = open(name);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    static String whyNot() {
        return "no ranges for profilers: none of " + String.join(", ", names()) + " can be loaded as NVTX; set "
                + Setting.NVTX_LIBRARY.key();
    }

    private static List<String> names() {
        return Settings.ofProcess()
                .get(Setting.NVTX_LIBRARY)
                .map(set -> List.of(set.text()))
                .orElse(NAMES);
    }

    /// @return null if it can't be loaded, is something else, or native access is denied
    @SuppressWarnings("restricted")
    private static @Nullable NvtxLibrary open(String name) {
        try {
            return new NvtxLibrary(
                    name.contains("/")
                            ? SymbolLookup.libraryLookup(Path.of(name), Arena.global())
                            : SymbolLookup.libraryLookup(name, Arena.global()));
        } catch (RuntimeException noLibrary) {
            return null;
        }
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
