package io.cistern.benchmarks;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/// Measures an allocation pair of `async` beside the same pair in C: in one process, on one pool, on the same
/// streams, in alternating rounds, because the driver's own calls drift by more than the difference.
///
/// - `C`: `cuMemAllocFromPoolAsync` and `cuMemFreeAsync` in a loop of C
/// - `floor`: the two calls in a bare Java loop (see [PairInFfm]); one thread only
/// - `raw`: the provider's own `allocate` and `free`
/// - `public`: [DeviceMemory#allocate] and [DeviceMemory#free], as a program calls them
///
/// A single thread stays on the last processor for all sides.
///
/// Arguments: the library made of `peers/async_pair.c`, seconds for each size (5), threads (16). Prints a line
/// of JSON for each size, number of threads and side: the median over the rounds, the 10th and 90th
/// percentiles, and `overC`, the median difference between a round and the round of C beside it. With several
/// threads, a pair's time is the whole time divided by the pairs of all threads.
public final class AsyncPair {
    private static final long[] BYTE_SIZES = {4 << 10, 1 << 20};
    private static final long PAIRS = 10_000;
    private static final int FEWEST_ROUNDS = 9;

    /// Distinguishes runs with different JVM options.
    private static final String LABEL =
            System.getProperty("cistern.label", "").isEmpty() ? "" : ", system memory barrier";

    private enum Side {
        C,
        FLOOR,
        RAW,
        PUBLIC;

        boolean isFor(int threads) {
            return threads == 1 || this != FLOOR;
        }
    }

    private final CudaDriver driver = CudaDrivers.openBest();
    private final long pool = driver.pools().create(MemoryPoolProperties.onDevice(0));
    private final DeviceMemory memory;
    private final DeviceAllocator raw;
    private final PairInC inC;
    private final long[] streams;

    private AsyncPair(Path library, int threads) {
        driver.pools().setAttribute(0, pool, PoolAttribute.RELEASE_THRESHOLD, -1);
        String spec = "async:pool=0x" + Long.toHexString(pool);
        ProviderTap tap = new ProviderTap(spec);
        List<AllocatorProvider> providers = new ArrayList<>(List.of(tap));
        ServiceLoader.load(AllocatorProvider.class).forEach(providers::add);
        memory = DeviceMemory.builder(driver)
                .catalog(Catalog.of(providers, List.of()))
                .open();
        memory.open("tap");
        memory.setCurrent(spec);
        raw = tap.tapped();
        inC = new PairInC(library, System.getProperty("cistern.cuda.library", "libcuda.so.1"));
        streams = new long[threads];
        Arrays.setAll(streams, _ -> driver.streams().create(0));
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws InterruptedException {
        int seconds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        int threads = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 16;
        AsyncPair measurement = new AsyncPair(Path.of(arguments[0]), threads);
        if (measurement.driver.simulated()) {
            System.err.println("AsyncPair: the simulated GPU has no pairs in C");
            return;
        }
        for (long byteSize : BYTE_SIZES) {
            measurement.measureOnOneProcessor(byteSize, TimeUnit.SECONDS.toNanos(seconds));
            for (int some : new int[] {2, 4, threads}) {
                measurement.measure(byteSize, some, TimeUnit.SECONDS.toNanos(seconds) / (some < threads ? 2 : 1));
            }
        }
        measurement.memory.close();
        measurement.driver.close();
    }

    private void measureOnOneProcessor(long byteSize, long nanos) throws InterruptedException {
        Thread thread = Thread.ofPlatform().start(() -> {
            OneProcessor.pin(Runtime.getRuntime().availableProcessors() - 1);
            try {
                measure(byteSize, 1, nanos);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        thread.join();
    }

    /// Spends another fifth of the time first, to warm up the compiler.
    private void measure(long byteSize, int threads, long nanos) throws InterruptedException {
        long pairs = Math.max(1000, PAIRS / threads);
        rounds(byteSize, threads, pairs, nanos / 5);
        long before = allocatedBytes();
        runJava(Side.RAW, byteSize, streams[0], pairs);
        long garbage = allocatedBytes() - before;
        Map<Side, List<Double>> all = rounds(byteSize, threads, pairs, nanos);
        for (Side side : sides(threads)) {
            print(
                    side,
                    byteSize,
                    threads,
                    all.getOrDefault(side, List.of()),
                    all.getOrDefault(Side.C, List.of()),
                    threads == 1 && side == Side.RAW ? (double) garbage / pairs : 0);
        }
    }

    /// Measures all sides in turns; each round begins with another side.
    private Map<Side, List<Double>> rounds(long byteSize, int threads, long pairs, long nanos)
            throws InterruptedException {
        Map<Side, List<Double>> all = new EnumMap<>(Side.class);
        Side[] sides = sides(threads);
        long end = System.nanoTime() + nanos;
        for (int round = 0; round < FEWEST_ROUNDS || System.nanoTime() < end; round++) {
            for (int i = 0; i < sides.length; i++) {
                Side side = sides[(round + i) % sides.length];
                long taken = threads == 1 ? one(side, byteSize, pairs) : many(side, byteSize, threads, pairs);
                all.computeIfAbsent(side, _ -> new ArrayList<>()).add((double) taken / (pairs * threads));
            }
        }
        return all;
    }

    private static Side[] sides(int threads) {
        return Arrays.stream(Side.values()).filter(side -> side.isFor(threads)).toArray(Side[]::new);
    }

    private long one(Side side, long byteSize, long pairs) {
        driver.memory().freeBytes(0); // Makes the context current, for C.
        return side == Side.C
                ? inC.nanos(pool, streams[0], byteSize, pairs)
                : runJava(side, byteSize, streams[0], pairs);
    }

    private long runJava(Side side, long byteSize, long stream, long pairs) {
        long begin = System.nanoTime();
        switch (side) {
            case FLOOR -> PairInFfm.pairs(pool, byteSize, stream, pairs);
            case RAW -> pairs(raw, byteSize, stream, pairs);
            default -> publicPairs(byteSize, stream, pairs);
        }
        return System.nanoTime() - begin;
    }

    private static void pairs(DeviceAllocator allocator, long byteSize, long stream, long pairs) {
        for (long i = 0; i < pairs; i++) {
            allocator.free(allocator.allocate(byteSize, 0, stream), byteSize, 0, stream);
        }
    }

    private void publicPairs(long byteSize, long stream, long pairs) {
        for (long i = 0; i < pairs; i++) {
            memory.free(memory.allocate(byteSize, 0, stream), stream);
        }
    }

    private long many(Side side, long byteSize, int threads, long pairs) throws InterruptedException {
        long[] own = Arrays.copyOf(streams, threads);
        if (side == Side.C) {
            return inC.nanos(driver.devices().primaryContext(0), pool, own, byteSize, pairs);
        }
        CountDownLatch ready = new CountDownLatch(threads);
        AtomicLong firstBegin = new AtomicLong(Long.MAX_VALUE);
        AtomicLong lastEnd = new AtomicLong(Long.MIN_VALUE);
        List<Thread> team = new ArrayList<>();
        for (long stream : own) {
            team.add(Thread.ofPlatform().start(() -> {
                runJava(side, byteSize, stream, 1); // A pair does not pay for the thread's first call.
                ready.countDown();
                while (ready.getCount() > 0) {
                    Thread.onSpinWait();
                }
                firstBegin.accumulateAndGet(System.nanoTime(), Math::min);
                runJava(side, byteSize, stream, pairs);
                lastEnd.accumulateAndGet(System.nanoTime(), Math::max);
            }));
        }
        for (Thread thread : team) {
            thread.join();
        }
        return lastEnd.get() - firstBegin.get();
    }

    private static long allocatedBytes() {
        return ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean threads
                ? threads.getThreadAllocatedBytes(Thread.currentThread().threadId())
                : 0;
    }

    private static void print(
            Side side, long byteSize, int threads, List<Double> rounds, List<Double> ofC, double garbageBytes) {
        double[] own = sorted(rounds);
        double[] over = new double[own.length];
        Arrays.setAll(over, i -> rounds.get(i) - ofC.get(i));
        Arrays.sort(over);
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"pair\",\"allocator\":\"%s\",\"byteSize\":%d,\"threads\":%d,\"rounds\":%d,"
                        + "\"nanosPerPair\":%.1f,\"p10\":%.1f,\"p90\":%.1f,\"overC\":%.1f,\"garbageBytes\":%.3f}%n",
                (side == Side.C ? "C" : "async " + side.name().toLowerCase(Locale.ROOT)) + LABEL,
                byteSize,
                threads,
                own.length,
                at(own, 0.5),
                at(own, 0.1),
                at(own, 0.9),
                at(over, 0.5),
                garbageBytes);
    }

    private static double[] sorted(List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    }

    private static double at(double[] sorted, double share) {
        return sorted[(int) (share * (sorted.length - 1))];
    }
}
