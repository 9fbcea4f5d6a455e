package io.cistern.benchmarks;

import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.errors.ConfigurationException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/// What a program pays that synchronises after each piece of work: allocate, run a kernel on the block, free it, wait
/// for the stream. There pools give back what their release threshold does not keep, and get it again.
///
/// Arguments: milliseconds for each spec, size and round (20), rounds (30), specs (async with each threshold, `direct`,
/// `caching`), of which those that can't be opened are left out. The specs take turns on one processor, each round
/// beginning with another, since a host drifts by more than what is between them. Prints a line of JSON for each spec
/// and size: medians over the rounds, with the rounds' least and most; `ofKeepAll`, the median of a round over that of
/// `keep_all` beside it; and what the pool holds afterwards.
public final class AsyncSteady implements AutoCloseable {
    private static final String KEEP_ALL = "async:release_threshold=keep_all";
    private static final List<String> USUAL = List.of(
            "async:release_threshold=zero",
            "async:release_threshold=64MiB",
            KEEP_ALL,
            "async:release_threshold=adaptive",
            "direct",
            "caching");
    private static final long[] BYTE_SIZES = {4 << 10, 1 << 20, 32 << 20, 256 << 20};

    /// Words that the kernel writes: enough to use the block, too few to hide the host's time.
    private static final long WORDS = 1024;

    private static final int WARM_UP = 2000;

    /// As for NCCL; not the first, which systems use for themselves.
    private static final int PROCESSOR = 2;

    private final String spec;
    private final OpenMemory open;
    private final MemoryKernels kernels;
    private final long stream;
    private final List<Double> microsOfRounds = new ArrayList<>();

    private AsyncSteady(String spec) {
        this.spec = spec;
        open = new OpenMemory(spec);
        kernels = MemoryKernels.load(open.driver(), 0);
        stream = open.newStream();
    }

    /// Measures and prints.
    public static void main(String[] arguments) {
        long millis = arguments.length > 0 ? Long.parseLong(arguments[0]) : 20;
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 30;
        List<String> specs = arguments.length > 2 ? List.of(arguments).subList(2, arguments.length) : USUAL;
        List<AsyncSteady> all = specs.stream()
                .filter(AsyncSteady::canBeOpened)
                .map(AsyncSteady::new)
                .toList();
        OneProcessor.pin(PROCESSOR);
        for (long byteSize : BYTE_SIZES) {
            all.forEach(each -> each.begin(byteSize));
            for (int round = 0; round < rounds; round++) {
                for (int i = 0; i < all.size(); i++) {
                    all.get((round + i) % all.size()).round(byteSize, TimeUnit.MILLISECONDS.toNanos(millis));
                }
            }
            all.forEach(each -> each.print(byteSize, all));
        }
        all.forEach(AsyncSteady::close);
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

    private void begin(long byteSize) {
        microsOfRounds.clear();
        for (int i = 0; i < WARM_UP; i++) {
            step(byteSize);
        }
    }

    private void round(long byteSize, long nanos) {
        long begin = System.nanoTime();
        long count = 0;
        do {
            step(byteSize);
            count++;
        } while (System.nanoTime() - begin < nanos);
        microsOfRounds.add((System.nanoTime() - begin) / 1e3 / count);
    }

    private void step(long byteSize) {
        long address = open.memory().allocate(byteSize, 0, stream);
        kernels.writeSequence(address, WORDS, 1, stream);
        open.memory().free(address, stream);
        open.driver().streams().synchronize(0, stream);
    }

    private void print(long byteSize, List<AsyncSteady> all) {
        System.out.printf(
                Locale.ROOT,
                "{\"measured\":\"allocate, kernel, free, synchronise\",\"allocator\":\"%s\",\"byteSize\":%d,"
                        + "\"micros\":%.2f,\"least\":%.2f,\"most\":%.2f,\"ofKeepAll\":%s,\"reservedBytes\":%d}%n",
                spec,
                byteSize,
                median(microsOfRounds),
                Collections.min(microsOfRounds),
                Collections.max(microsOfRounds),
                ofKeepAll(all),
                open.memory().current(0).reservedBytes(0).orElse(-1));
    }

    private String ofKeepAll(List<AsyncSteady> all) {
        return all.stream()
                .filter(each -> each.spec.equals(KEEP_ALL))
                .findFirst()
                .map(keeping -> String.format(Locale.ROOT, "%.3f", median(ratios(keeping))))
                .orElse("null");
    }

    private List<Double> ratios(AsyncSteady other) {
        return IntStream.range(0, microsOfRounds.size())
                .mapToObj(i -> microsOfRounds.get(i) / other.microsOfRounds.get(i))
                .toList();
    }

    private static double median(List<Double> all) {
        return all.stream().sorted().skip(all.size() / 2).findFirst().orElseThrow();
    }

    @Override
    public void close() {
        open.driver().streams().synchronize(0, stream);
        open.driver().streams().destroy(0, stream);
        kernels.close();
        open.close();
    }
}
