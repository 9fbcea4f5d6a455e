package io.cistern.benchmarks.thresholds;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;

/// What release thresholds do to a program on a GPU, or on a simulated one in its virtual time:
///
/// - *steady*: allocate, launch a kernel that reads the block, free, synchronise; the median of rounds, in
///   which all allocators take turns;
/// - *phases*: steps of 5 GiB and then many of 0.5 GiB, twice over: how long all took, what was held on average
///   after a step, and after how many small steps at most 0.55 GiB were held.
///
/// Argument: rounds (9). Prints a line of JSON for each allocator and size.
public final class ThresholdSteps implements AutoCloseable {
    private static final List<String> SPECS = List.of(
            "direct",
            "async:release_threshold=zero",
            "async:release_threshold=32MiB",
            "async:release_threshold=1GiB",
            "async:release_threshold=4GiB",
            "async:release_threshold=16GiB",
            "async:release_threshold=keep_all",
            "async:release_threshold=adaptive",
            "caching");
    private static final long MIB = 1L << 20;
    private static final long[] SIZES = {4096, MIB, 64 * MIB, 256 * MIB};
    private static final int TURNS_A_ROUND = 200;

    private static final long BLOCK_BYTES = 256 * MIB;
    private static final int LARGE_BLOCKS = 20;
    private static final int SMALL_BLOCKS = 2;
    private static final int LARGE_STEPS = 150;
    private static final int SMALL_STEPS = 3000;
    private static final int TURNS = 2;

    private final CudaDriver driver = CudaDrivers.openBest();
    private final DeviceMemory memory = DeviceMemory.builder(driver)
            .catalog(Catalog.of(all(AllocatorProvider.class), all(SegmentSourceProvider.class)))
            .open();
    private final MemoryKernels kernels = MemoryKernels.load(driver, 0);
    private final long stream = driver.streams().create(0);
    private final long counter = driver.memory().allocate(0, 8);

    private ThresholdSteps() {}

    /// Measures and prints.
    public static void main(String[] arguments) {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 9;
        try (ThresholdSteps steps = new ThresholdSteps()) {
            for (long byteSize : SIZES) {
                steps.steady(byteSize, rounds);
            }
            SPECS.stream().filter(spec -> !spec.equals("direct")).forEach(steps::phases);
        }
    }

    private static <T> List<T> all(Class<T> service) {
        return ServiceLoader.load(service).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
    }

    private void steady(long byteSize, int rounds) {
        List<Allocator> allocators =
                SPECS.stream().map(spec -> memory.open(spec)).toList();
        double[][] nanos = new double[SPECS.size()][rounds];
        for (int round = -2; round < rounds; round++) {
            for (int i = 0; i < SPECS.size(); i++) {
                double taken = round(allocators.get(i), byteSize);
                if (round >= 0) {
                    nanos[i][round] = taken;
                }
            }
        }
        for (int i = 0; i < SPECS.size(); i++) {
            Arrays.sort(nanos[i]);
            System.out.printf(
                    Locale.ROOT,
                    "{\"measured\":\"steady\",\"allocator\":\"%s\",\"device\":\"%s\",\"byteSize\":%d,"
                            + "\"nanos\":%.0f,\"lowestNanos\":%.0f,\"highestNanos\":%.0f}%n",
                    SPECS.get(i),
                    device(),
                    byteSize,
                    nanos[i][rounds / 2],
                    nanos[i][0],
                    nanos[i][rounds - 1]);
            allocators.get(i).close();
        }
    }

    private double round(Allocator allocator, long byteSize) {
        long begin = driver.nanoTime();
        for (int turn = 0; turn < TURNS_A_ROUND; turn++) {
            long block = allocator.allocate(byteSize, 0, stream);
            kernels.countMismatches(block, 1, 0, counter, stream);
            memory.free(block, stream);
            driver.streams().synchronize(0, stream);
        }
        return (double) (driver.nanoTime() - begin) / TURNS_A_ROUND;
    }

    private void phases(String spec) {
        Allocator allocator = memory.open(spec);
        List<Integer> stepsUntilFallen = new ArrayList<>();
        double held = 0;
        long begin = driver.nanoTime();
        for (int turn = 0; turn < TURNS; turn++) {
            for (int i = 0; i < LARGE_STEPS; i++) {
                held += step(allocator, LARGE_BLOCKS);
            }
            int fallenAfter = -1;
            for (int i = 0; i < SMALL_STEPS; i++) {
                double now = step(allocator, SMALL_BLOCKS);
                held += now;
                fallenAfter = fallenAfter < 0 && now <= 1.1 * SMALL_BLOCKS * BLOCK_BYTES ? i + 1 : fallenAfter;
            }
            stepsUntilFallen.add(fallenAfter);
        }
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"phases\",\"allocator\":\"%s\",\"device\":\"%s\",\"millis\":%.1f,"
                        + "\"heldBytes\":%.0f,\"smallStepsUntilFallen\":%s}%n",
                spec,
                device(),
                (driver.nanoTime() - begin) / 1e6,
                held / (TURNS * (LARGE_STEPS + SMALL_STEPS)),
                stepsUntilFallen);
        allocator.close();
    }

    /// Takes blocks, writes each, frees all and waits.
    ///
    /// @return bytes held after it
    private double step(Allocator allocator, int blocks) {
        long[] addresses = new long[blocks];
        for (int i = 0; i < blocks; i++) {
            addresses[i] = allocator.allocate(BLOCK_BYTES, 0, stream);
            driver.copies().fillBytes(0, addresses[i], (byte) 1, BLOCK_BYTES, stream);
        }
        for (long address : addresses) {
            memory.free(address, stream);
        }
        driver.streams().synchronize(0, stream);
        return allocator.reservedBytes(0).orElseThrow();
    }

    private String device() {
        return driver.simulated() ? "simulated" : "cuda:0";
    }

    @Override
    public void close() {
        memory.close();
        driver.memory().free(0, counter);
        kernels.close();
        driver.close();
    }
}
