package io.cistern.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Arrays;

/// The pair in Java with nothing around its two calls: handles and the word for the address are
/// constants, nothing is counted, and the context is current. Its cost over C is the JVM's part, which no
/// binding can avoid.
@SuppressWarnings("restricted")
final class PairInFfm {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final SymbolLookup DRIVER = driver(System.getProperty("cistern.cuda.library", "libcuda.so.1"));
    private static final MethodHandle ALLOCATE = bind("cuMemAllocFromPoolAsync", 4);
    private static final MethodHandle FREE = bind("cuMemFreeAsync", 2);
    private static final MemorySegment ADDRESS = Arena.global().allocate(64, 64);

    private PairInFfm() {}

    private static SymbolLookup driver(String library) {
        return library.contains("/")
                ? SymbolLookup.libraryLookup(Path.of(library), Arena.global())
                : SymbolLookup.libraryLookup(library, Arena.global());
    }

    private static MethodHandle bind(String name, int parameters) {
        MemoryLayout[] longs = new MemoryLayout[parameters];
        Arrays.fill(longs, LONG);
        return Linker.nativeLinker()
                .downcallHandle(DRIVER.findOrThrow(name), FunctionDescriptor.of(ValueLayout.JAVA_INT, longs));
    }

    /// Runs so many pairs; for one thread at a time.
    static void pairs(long pool, long byteSize, long stream, long pairs) {
        try {
            for (long i = 0; i < pairs; i++) {
                int code = (int) ALLOCATE.invokeExact(ADDRESS.address(), byteSize, pool, stream);
                require(code == 0 && (int) FREE.invokeExact(ADDRESS.get(LONG, 0), stream) == 0);
            }
        } catch (Throwable e) {
            throw LoopsInC.failed(e);
        }
    }

    private static void require(boolean done) {
        if (!done) {
            throw new IllegalStateException("the driver failed");
        }
    }
}
