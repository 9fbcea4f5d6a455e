package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/// Calls loops in C. A function of them returns the nanoseconds that it took, or the negated result of a driver call
/// that failed.
@SuppressWarnings("restricted")
final class InC {
    private final SymbolLookup symbols;
    private final Map<String, MethodHandle> functions = new HashMap<>();

    InC(Path library) {
        symbols = SymbolLookup.libraryLookup(library, Arena.global());
    }

    /// Loads a library of `peers`.
    ///
    /// @param open its function that finds those of the driver
    InC(Path library, String open) {
        this(library);
        String driver = System.getProperty("cistern.cuda.library", "libcuda.so.1");
        try (Arena arena = Arena.ofConfined()) {
            nanos(open, arena.allocateFrom(driver).address());
        }
    }

    long address(String symbol) {
        return symbols.findOrThrow(symbol).address();
    }

    /// Calls a function whose parameters are `int` and words of 64 bits; for driver calls the context must be current.
    long nanos(String function, Number... arguments) {
        MemoryLayout[] parameters = Stream.of(arguments)
                .map(argument -> argument instanceof Integer ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG)
                .toArray(MemoryLayout[]::new);
        MethodHandle handle = functions.computeIfAbsent(
                function,
                name -> Linker.nativeLinker()
                        .downcallHandle(
                                symbols.findOrThrow(name), FunctionDescriptor.of(ValueLayout.JAVA_LONG, parameters)));
        try {
            long nanos = (long) handle.invokeWithArguments((Object[]) arguments);
            if (nanos < 0) {
                throw new IllegalStateException(function + " failed with " + -nanos);
            }
            return nanos;
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
