package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;

/// Allocates from an allocator written in C: the compiled `src/main/c/alloc.c`.
///
/// Argument: the path of the library. The same spec works in `-Dcistern.allocator=…`, `CISTERN_ALLOCATOR=…` and
/// `cistern replay --allocator …`. On a simulated GPU the blocks are counted but can't be used.
public final class LoadSharedLibrary {
    private static final int DEVICE = 0;

    private LoadSharedLibrary() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        if (arguments.length != 1) {
            System.err.println(
                    "one argument: the path of the library that `cc -shared -fPIC -o liballoc.so alloc.c` makes");
            System.exit(2);
        }
        String library = "library:path=" + arguments[0] + ",malloc=my_malloc,free=my_free";
        DeviceMemory memory = DeviceMemory.system();
        Allocator inC = memory.setCurrent(library);
        long one = memory.allocate(1000, DEVICE, 0);
        long two = memory.allocate(3000, DEVICE, 0);
        System.out.printf(
                "%s gave %d blocks, %d bytes%n",
                inC.name(),
                inC.statistics(DEVICE).liveBlocks(),
                inC.statistics(DEVICE).requestedBytes());
        memory.free(one, 0);
        memory.free(two, 0);

        try (MemoryPool pool =
                memory.pools().open("caching:source=\"" + library + '"')) { // its segments are cut and kept
            for (int i = 0; i < 1000; i++) {
                memory.free(pool.allocate(4096, DEVICE, 0), 0);
            }
            System.out.printf(
                    "%d allocations from %d bytes of it%n",
                    pool.statistics(DEVICE).allocations(),
                    pool.reservedBytes(DEVICE).orElseThrow());
        }
    }
}
