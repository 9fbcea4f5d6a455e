package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Measures what calls between Java and C cost a pair, both ways, against the same pair that stays on one side,
/// in turns.
///
/// | row | caller | callee |
/// |---|---|---|
/// | `c` | C | the library's two functions, which do nothing |
/// | `library` | Java | the same two through `DeviceMemory`, as the allocator `library` |
/// | `brief` | Java | the same, with its option `critical` |
/// | `java` | Java | an allocator in Java that does nothing, through `DeviceMemory` |
/// | `exported` | C | that allocator, through the function pointers of `AllocatorFunctions` |
///
/// Arguments: `library` or `brief`, reported after `c`, or `exported`, reported after `java`; rounds (31). Each
/// direction needs its own JVM, because its calls would change how the other's are compiled. Needs a C
/// compiler.
public final class NativeBoundary {
    private static final long BYTES = 4096;
    private static final long PAIRS = 1_000_000;

    private static final String SOURCE = """
            #include <stdint.h>
            #include <sys/types.h>
            #include <time.h>
            typedef void* (*malloc_t)(ssize_t, int, void*);
            typedef void (*free_t)(void*, ssize_t, int, void*);
            __attribute__((noinline)) void* my_malloc(ssize_t size, int device, void* stream) { return (void*) 0x7f0000000000; }
            __attribute__((noinline)) void my_free(void* p, ssize_t size, int device, void* stream) { __asm__ volatile(""); }
            long pairs(malloc_t m, free_t f, long count) {
                struct timespec begin, end;
                clock_gettime(CLOCK_MONOTONIC, &begin);
                for (long i = 0; i < count; i++) f(m(4096, 0, 0), 4096, 0, 0);
                clock_gettime(CLOCK_MONOTONIC, &end);
                return (end.tv_sec - begin.tv_sec) * 1000000000l + (end.tv_nsec - begin.tv_nsec);
            }
            """;

    private NativeBoundary() {}

    /// Measures and prints a line for each of the two rows.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        String direction = arguments.length > 0 ? arguments[0] : "library";
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 31;
        Path library = compiled();
        InC inC = new InC(library);
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(1 << 20).build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            Turns turns = new Turns();
            if (direction.equals("exported")) {
                memory.currents().set(memory.open(OpenOptions.made("nothing", new SpacedAllocator())));
                AllocatorFunctions exported = AllocatorFunctions.of(memory);
                turns.add("java", () -> inJava(memory))
                        .add(
                                direction,
                                () -> inC(
                                        inC,
                                        exported.malloc().address(),
                                        exported.free().address()));
            } else {
                memory.setCurrent("library:path=" + library + ",critical=" + direction.equals("brief"));
                turns.add("c", () -> inC(inC, inC.address("my_malloc"), inC.address("my_free")))
                        .add(direction, () -> inJava(memory));
            }
            turns.run(5, rounds)
                    .each((row, nanos) -> Json.print(
                            "row", row,
                            "nanosPerPair", Json.rounded(nanos.median(), 2),
                            "quartiles", List.of(Json.rounded(nanos.at(0.25), 2), Json.rounded(nanos.at(0.75), 2)),
                            "rounds", nanos.count()));
        }
    }

    private static double inJava(DeviceMemory memory) {
        long begin = System.nanoTime();
        for (int i = 0; i < PAIRS; i++) {
            memory.free(memory.allocate(BYTES, 0, 0), 0);
        }
        return (double) (System.nanoTime() - begin) / PAIRS;
    }

    private static double inC(InC inC, long malloc, long free) {
        return (double) inC.nanos("pairs", malloc, free, PAIRS) / PAIRS;
    }

    private static Path compiled() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("native-boundary");
        Path source = Files.writeString(folder.resolve("boundary.c"), SOURCE);
        Path library = folder.resolve("boundary.so");
        int code = new ProcessBuilder("cc", "-O2", "-shared", "-fPIC", "-o", library.toString(), source.toString())
                .inheritIO()
                .start()
                .waitFor();
        if (code != 0) {
            throw new IOException("cc failed");
        }
        return library;
    }
}
