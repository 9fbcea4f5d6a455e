package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.loader.functions.AllocatorFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/// Makes a native library allocate from Cistern: the compiled `src/main/c/framework.c` accepts a
/// pair of functions.
///
/// Argument: the path of the library.
public final class ExportToC {
    private static final int DEVICE = 0;
    private static final int LAYERS = 10;

    private ExportToC() {}

    /// Runs the example.
    @SuppressWarnings("restricted")
    public static void main(String[] arguments) throws Throwable {
        if (arguments.length != 1) {
            System.err.println(
                    "one argument: the path of the library that `cc -shared -fPIC -o libframework.so framework.c` makes");
            System.exit(2);
        }
        SymbolLookup framework = SymbolLookup.libraryLookup(Path.of(arguments[0]), Arena.global());
        MethodHandle setAllocator = function(
                framework,
                "framework_set_allocator",
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS));
        MethodHandle train = function(
                framework,
                "framework_train",
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));

        DeviceMemory memory = DeviceMemory.system();
        Allocator current = memory.setCurrent("caching");
        AllocatorFunctions functions = AllocatorFunctions.of(memory);
        setAllocator.invokeExact(functions.malloc(), functions.free());
        int got = (int) train.invokeExact(LAYERS, DEVICE);
        System.out.printf(
                "C got %d blocks from %s; the peak was %d bytes, %d blocks are left%n",
                got,
                current.name(),
                current.statistics(DEVICE).requestedPeakBytes(),
                current.statistics(DEVICE).liveBlocks());
    }

    @SuppressWarnings("restricted")
    private static MethodHandle function(SymbolLookup library, String name, FunctionDescriptor shape) {
        return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), shape);
    }
}
