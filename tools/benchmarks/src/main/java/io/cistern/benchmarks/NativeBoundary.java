package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.DoubleSupplier;

/// Measures what calls between Java and C cost an allocation pair, in both directions, beside the same
/// pair that stays on one side. Rounds alternate, so that disturbances of the machine affect both alike;
/// it prints medians.
///
/// | row | caller | callee |
/// |---|---|---|
/// | `c` | C | the library's two functions, which do nothing |
/// | `library` | Java | the same two through `DeviceMemory`, as the allocator `library` |
/// | `brief` | Java | the same, with its option `critical` |
/// | `java` | Java | an allocator in Java that does nothing, through `DeviceMemory` |
/// | `exported` | C | that allocator, through the function pointers of `AllocatorFunctions` |
///
/// Arguments: `library` or `brief`, reported with `c`, or `exported`, reported with `java`; rounds (31); pairs
/// a round (1,000,000). Each direction needs its own JVM, because its calls would change how the other's are
/// compiled. Needs a C compiler.
public final class NativeBoundary {
    private static final long BYTES = 4096;

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

    private final DeviceMemory memory;
    private final MethodHandle pairsInC;
    private final int pairs;

    private NativeBoundary(DeviceMemory memory, MethodHandle pairsInC, int pairs) {
        this.memory = memory;
        this.pairsInC = pairsInC;
        this.pairs = pairs;
    }

    /// Measures and prints a line for each row.
    public static void main(String[] arguments) throws Exception {
        String direction = arguments.length > 0 ? arguments[0] : "library";
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 31;
        int pairs = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1_000_000;
        Path library = compiled();
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(1 << 20).build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            SymbolLookup symbols = symbols(library);
            NativeBoundary boundary = new NativeBoundary(memory, pairsInC(symbols), pairs);
            if (!direction.equals("exported")) {
                memory.setCurrent("library:path=" + library + ",critical=" + direction.equals("brief"));
                MemorySegment malloc = symbols.findOrThrow("my_malloc");
                MemorySegment free = symbols.findOrThrow("my_free");
                boundary.measure(rounds, "c", () -> boundary.inC(malloc, free), direction, boundary::inJava);
            } else {
                memory.currents().set(memory.open(OpenOptions.made("nothing", new NoAllocator())));
                AllocatorFunctions exported = AllocatorFunctions.of(memory);
                boundary.measure(
                        rounds,
                        "java",
                        boundary::inJava,
                        "exported",
                        () -> boundary.inC(exported.malloc(), exported.free()));
            }
        }
    }

    private void measure(int rounds, String one, DoubleSupplier first, String other, DoubleSupplier second) {
        double[][] times = new double[2][rounds];
        for (int round = -5; round < rounds; round++) { // Rounds below 0 warm up the compiler.
            times[0][Math.max(0, round)] = first.getAsDouble();
            times[1][Math.max(0, round)] = second.getAsDouble();
        }
        print(one, times[0]);
        print(other, times[1]);
    }

    private static void print(String name, double[] times) {
        double[] sorted = times.clone();
        Arrays.sort(sorted);
        System.out.printf(
                Locale.ROOT,
                "{\"row\":\"%s\",\"nanosPerPair\":%.2f,\"quartiles\":%s,\"rounds\":%d}%n",
                name,
                sorted[sorted.length / 2],
                Arrays.toString(new double[] {
                    Math.round(sorted[sorted.length / 4] * 100) / 100.0,
                    Math.round(sorted[sorted.length * 3 / 4] * 100) / 100.0
                }),
                sorted.length);
    }

    private double inJava() {
        long begin = System.nanoTime();
        for (int i = 0; i < pairs; i++) {
            memory.free(memory.allocate(BYTES, 0, 0), 0);
        }
        return (double) (System.nanoTime() - begin) / pairs;
    }

    private double inC(MemorySegment malloc, MemorySegment free) {
        try {
            return (double) (long) pairsInC.invokeExact(malloc, free, (long) pairs) / pairs;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @SuppressWarnings("restricted")
    private static SymbolLookup symbols(Path library) {
        return SymbolLookup.libraryLookup(library, Arena.global());
    }

    @SuppressWarnings("restricted")
    private static MethodHandle pairsInC(SymbolLookup symbols) {
        return Linker.nativeLinker()
                .downcallHandle(
                        symbols.findOrThrow("pairs"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_LONG,
                                ValueLayout.ADDRESS,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_LONG));
    }

    private static Path compiled() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("native-boundary");
        Path source = Files.writeString(folder.resolve("boundary.c"), SOURCE);
        Path library = folder.resolve("boundary.so");
        Process compiler = new ProcessBuilder(
                        "cc", "-O2", "-shared", "-fPIC", "-o", library.toString(), source.toString())
                .inheritIO()
                .start();
        if (compiler.waitFor() != 0) {
            throw new IOException("cc failed");
        }
        return library;
    }
}
