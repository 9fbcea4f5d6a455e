package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// The loops of `peers/async_pair.c` in this process.
@SuppressWarnings("restricted")
final class PairInC {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

    private final MethodHandle pairs;
    private final MethodHandle threadedPairs;

    /// @param library the compiled `async_pair.c`
    /// @param driver the driver's library, as this process has loaded it
    PairInC(Path library, String driver) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(library, Arena.global());
        pairs = bind(symbols, "async_pair_nanos", FunctionDescriptor.of(LONG, LONG, LONG, LONG, LONG));
        threadedPairs = bind(
                symbols,
                "async_pair_threads_nanos",
                FunctionDescriptor.of(LONG, LONG, LONG, ValueLayout.ADDRESS, INT, LONG, LONG));
        MethodHandle open = bind(symbols, "async_pair_open", FunctionDescriptor.of(INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            int code = (int) open.invokeExact(arena.allocateFrom(driver));
            if (code != 0) {
                throw new IllegalStateException(driver + " has no stream-ordered allocation");
            }
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    private static MethodHandle bind(SymbolLookup symbols, String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor);
    }

    /// Nanoseconds of so many pairs on the calling thread, whose context must be current.
    long nanos(long pool, long stream, long byteSize, long count) {
        try {
            return checked((long) pairs.invokeExact(pool, stream, byteSize, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// The same on threads of its own, one a stream, all together, from the first begin to the last end.
    long nanos(long context, long pool, long[] streams, long byteSize, long countEach) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handles = arena.allocateFrom(LONG, streams);
            return checked(
                    (long) threadedPairs.invokeExact(context, pool, handles, streams.length, byteSize, countEach));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    private static long checked(long nanos) {
        if (nanos < 0) {
            throw new IllegalStateException("the driver failed with " + -nanos);
        }
        return nanos;
    }

    private static RuntimeException failed(Throwable thrown) {
        if (thrown instanceof Error error) {
            throw error;
        }
        return thrown instanceof RuntimeException e ? e : new IllegalStateException(thrown);
    }
}
