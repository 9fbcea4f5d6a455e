package io.cistern.examples;

import io.cistern.Admission;
import io.cistern.DeviceMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Collections;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Lets threads use a native library that allocates device memory itself, the compiled `src/main/c/index.c`,
/// without running out of memory: each thread announces how much the library will allocate, and waits until
/// there is room.
///
/// Argument: the path of the library.
public final class AdmitLibrary {
    private static final int DEVICE = 0;
    private static final int DIMENSIONS = 1024;
    private static final int INDEXES = 6;

    private final DeviceMemory memory = DeviceMemory.system();
    private final MethodHandle bytes;
    private final MethodHandle build;
    private final MethodHandle destroy;

    @SuppressWarnings("restricted")
    private AdmitLibrary(Path library) {
        SymbolLookup index = SymbolLookup.libraryLookup(library, Arena.global());
        var size = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT);
        bytes = Linker.nativeLinker().downcallHandle(index.findOrThrow("index_bytes"), size);
        build = Linker.nativeLinker().downcallHandle(index.findOrThrow("index_build"), size);
        destroy = Linker.nativeLinker()
                .downcallHandle(index.findOrThrow("index_destroy"), FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
    }

    /// Builds several indexes at once; only two have room at a time.
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1) {
            System.err.println(
                    "one argument: the path of the library that `cc -shared -fPIC -o libindex.so index.c -ldl` makes");
            System.exit(2);
        }
        new AdmitLibrary(Path.of(arguments[0])).buildAll();
    }

    private void buildAll() throws Exception {
        memory.limits().device(DEVICE).setByteSize(20 << 20); // two of 8 MiB, and 4 MiB for everything else
        try (ExecutorService threads = Executors.newFixedThreadPool(INDEXES)) {
            for (Future<Boolean> built :
                    threads.invokeAll(Collections.<Callable<Boolean>>nCopies(INDEXES, this::buildOne))) {
                built.get();
            }
        }
        System.out.printf(
                "%d indexes; at most %d MiB admitted at once, %d left%n",
                INDEXES,
                memory.statistics(DEVICE).requestedPeakBytes() >> 20,
                memory.statistics(DEVICE).liveBlocks());
    }

    private boolean buildOne() throws Exception {
        try {
            long needed = (long) bytes.invokeExact(2048L, DIMENSIONS);
            try (Admission _ = memory.admit(DEVICE, needed)) {
                memory.driver().devices().synchronize(DEVICE); // gives this thread a context
                long index = (long) build.invokeExact(2048L, DIMENSIONS);
                Thread.sleep(10); // searches
                destroy.invokeExact(index);
            }
            return true;
        } catch (Exception | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
