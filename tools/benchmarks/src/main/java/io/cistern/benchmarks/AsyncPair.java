package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import java.nio.file.Path;

/// Measures an allocation and its free through `async` against the same two driver calls in C: in one process, on one
/// pool, stream and processor, in turns, because the driver's own calls drift by more than the difference.
///
/// Arguments: the library made of `peers/async_pair.c`; rounds (400). Prints a line for each size and side: the median
/// of the rounds, the 10th and 90th percentiles, and the median difference to the round of C beside it.
public final class AsyncPair {
    private static final long[] BYTE_SIZES = {4 << 10, 1 << 20};
    private static final long PAIRS = 10_000;

    private AsyncPair() {}

    /// Measures and prints.
    public static void main(String[] arguments) throws InterruptedException {
        InC inC = new InC(Path.of(arguments[0]), "async_pair_open");
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 400;
        Thread.ofPlatform()
                .start(() -> {
                    OneProcessor.pin(Runtime.getRuntime().availableProcessors() - 1);
                    measure(inC, rounds);
                })
                .join();
    }

    private static void measure(InC inC, int rounds) {
        try (OpenMemory open = new OpenMemory("async")) {
            long pool = open.driver().pools().create(MemoryPoolProperties.onDevice(0));
            open.driver().pools().setAttribute(0, pool, PoolAttribute.RELEASE_THRESHOLD, -1);
            open.memory().setCurrent("async:pool=0x" + Long.toHexString(pool));
            long stream = open.newStream();
            for (long byteSize : BYTE_SIZES) {
                Turns turns = new Turns()
                        .add("C", () -> {
                            open.driver().memory().freeBytes(0); // Makes the context current.
                            return (double) inC.nanos("async_pair_nanos", pool, stream, byteSize, PAIRS) / PAIRS;
                        })
                        .add("async public", () -> nanos(open.memory(), byteSize, stream))
                        .run(rounds / 5, rounds);
                turns.each((side, nanos) -> Json.print(
                        "measured", "pair",
                        "allocator", side,
                        "byteSize", byteSize,
                        "threads", 1,
                        "rounds", nanos.count(),
                        "nanosPerPair", Json.rounded(nanos.median(), 1),
                        "p10", Json.rounded(nanos.at(0.1), 1),
                        "p90", Json.rounded(nanos.at(0.9), 1),
                        "overC", Json.rounded(turns.over(side), 1)));
            }
        }
    }

    private static double nanos(DeviceMemory memory, long byteSize, long stream) {
        long begin = System.nanoTime();
        for (long i = 0; i < PAIRS; i++) {
            memory.free(memory.allocate(byteSize, 0, stream), stream);
        }
        return (double) (System.nanoTime() - begin) / PAIRS;
    }
}
