package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Loads a library of `peers` into this process. Its functions loop over driver calls and return nanoseconds,
/// or the negated result of a driver call that failed.
@SuppressWarnings("restricted")
abstract class LoopsInC {
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

    private final SymbolLookup symbols;

    /// @param library the compiled source
    /// @param open the library's function that looks up the driver's functions; it returns 0 if it found them
    /// @param driver the driver's library, as this process has loaded it
    LoopsInC(Path library, String open, String driver) {
        symbols = SymbolLookup.libraryLookup(library, Arena.global());
        MethodHandle finds = Linker.nativeLinker()
                .downcallHandle(symbols.findOrThrow(open), FunctionDescriptor.of(INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            int code = (int) finds.invokeExact(arena.allocateFrom(driver));
            if (code != 0) {
                throw new IllegalStateException(driver + " lacks what " + library + " calls");
            }
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Binds a function that returns nanoseconds.
    final MethodHandle bind(String name, MemoryLayout... parameters) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), FunctionDescriptor.of(LONG, parameters));
    }

    static long checked(long nanos) {
        if (nanos < 0) {
            throw new IllegalStateException("the driver failed with " + -nanos);
        }
        return nanos;
    }

    static RuntimeException failed(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
    }
}
