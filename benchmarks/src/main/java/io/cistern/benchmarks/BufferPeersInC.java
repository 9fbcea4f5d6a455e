package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// The loops of `peers/buffer_peers.c` in this process.
@SuppressWarnings("restricted")
final class BufferPeersInC {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;

    private final MethodHandle copies;
    private final MethodHandle launches;

    /// @param library the compiled `buffer_peers.c`
    /// @param driver the driver's library, as this process has loaded it
    BufferPeersInC(Path library, String driver) {
        SymbolLookup symbols = SymbolLookup.libraryLookup(library, Arena.global());
        copies = bind(symbols, "copies_nanos", INT, LONG, LONG, LONG, LONG, LONG);
        launches = bind(symbols, "launches_nanos", LONG, LONG, LONG, INT, LONG, LONG);
        MethodHandle open = Linker.nativeLinker()
                .downcallHandle(
                        symbols.findOrThrow("buffer_peers_open"), FunctionDescriptor.of(INT, ValueLayout.ADDRESS));
        try (Arena arena = Arena.ofConfined()) {
            int code = (int) open.invokeExact(arena.allocateFrom(driver));
            if (code != 0) {
                throw new IllegalStateException(driver + " is no driver");
            }
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    private static MethodHandle bind(SymbolLookup symbols, String name, MemoryLayout... parameters) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), FunctionDescriptor.of(LONG, parameters));
    }

    /// Nanoseconds of so many copies and the wait for them; the context must be current.
    ///
    /// @param kind 0 from the host to the device, 1 back, 2 on the device
    long copies(int kind, long target, long source, long byteSize, long stream, long count) {
        try {
            return checked((long) copies.invokeExact(kind, target, source, byteSize, stream, count));
        } catch (Throwable e) {
            throw failed(e);
        }
    }

    /// Nanoseconds until the last of so many launches has returned; the context must be current.
    long launches(long function, long address, long words, int first, long stream, long count) {
        try {
            return checked((long) launches.invokeExact(function, address, words, first, stream, count));
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
