package io.cistern.benchmarks;

import io.cistern.ConfigurationException;
import io.cistern.DeviceMemory;
import io.cistern.cuda.kernels.MemoryKernels;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/// What a program pays that synchronises after each piece of work: allocate, run a kernel on the block, free it, wait
/// for the stream. There pools give back what their release threshold does not keep, and get it again.
///
/// Arguments: milliseconds for each spec, size and round (200), rounds (5), specs (async with each threshold, `direct`,
/// `caching`), of which those that can't be opened are left out. The specs take turns. Prints a line of JSON for each
/// spec and size: medians over the rounds, with the rounds' least and most, and what the pool holds afterwards.
public final class AsyncSteady {
    private static final List<String> USUAL = List.of(
            "async:release_threshold=zero",
            "async:release_threshold=64MiB",
            "async:release_threshold=keep_all",
            "async:release_threshold=adaptive",
            "direct",
            "caching");
    private static final long[] BYTE_SIZES = {1 << 20, 32 << 20, 256 << 20};

    /// Words that the kernel writes: enough to use the block, too few to hide the host's time.
    private static final long WORDS = 1024;

    private static final int WARM_UP = 200;

    private final String spec;
    private final long byteSize;
    private final List<Double> microsOfRounds = new ArrayList<>();
    private long reservedBytes;

    private AsyncSteady(String spec, long byteSize) {
        this.spec = spec;
        this.byteSize = byteSize;
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        long millis = arguments.length > 0 ? Long.parseLong(arguments[0]) : 200;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        List<String> specs = arguments.length > 2 ? List.of(arguments).subList(2, arguments.length) : USUAL;
        List<String> legal = specs.stream().filter(AsyncSteady::canBeOpened).toList();
        for (long byteSize : BYTE_SIZES) {
            List<AsyncSteady> all =
                    legal.stream().map(spec -> new AsyncSteady(spec, byteSize)).toList();
            for (int round = 0; round < rounds; round++) {
                all.forEach(each -> each.round(TimeUnit.MILLISECONDS.toNanos(millis)));
            }
            all.forEach(AsyncSteady::print);
        }
    }

    private static boolean canBeOpened(String spec) {
        try {
            new OpenMemory(spec).close();
            return true;
        } catch (ConfigurationException e) {
            System.err.println("AsyncSteady: " + e.getMessage());
            return false;
        }
    }

    private void round(long nanos) {
        OpenMemory open = new OpenMemory(spec);
        try (open;
                MemoryKernels kernels = MemoryKernels.load(open.driver(), 0)) {
            long stream = open.newStream();
            DeviceMemory memory = open.memory();
            for (int i = 0; i < WARM_UP; i++) {
                step(open, kernels, stream);
            }
            long begin = System.nanoTime();
            long count = 0;
            do {
                step(open, kernels, stream);
                count++;
            } while (System.nanoTime() - begin < nanos);
            microsOfRounds.add((System.nanoTime() - begin) / 1e3 / count);
            reservedBytes = memory.current().reservedBytes(0).orElse(-1);
            open.driver().streams().destroy(0, stream);
        }
    }

    private void step(OpenMemory open, MemoryKernels kernels, long stream) {
        long address = open.memory().allocate(byteSize, 0, stream);
        kernels.writeSequence(address, WORDS, 1, stream);
        open.memory().free(address, stream);
        open.driver().streams().synchronize(0, stream);
    }

    private void print() {
        double[] sorted = microsOfRounds.stream()
                .mapToDouble(Double::doubleValue)
                .sorted()
                .toArray();
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"allocate, kernel, free, synchronise\",\"allocator\":\"%s\",\"byteSize\":%d,"
                        + "\"micros\":%.2f,\"least\":%.2f,\"most\":%.2f,\"reservedBytes\":%d}%n",
                spec,
                byteSize,
                sorted[sorted.length / 2],
                sorted[0],
                sorted[sorted.length - 1],
                reservedBytes);
    }
}
