package io.cistern.benchmarks.generated;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.async.AsyncOption;
import io.cistern.caching.options.CachingOption;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.Plugins;
import io.cistern.cli.trace.BundledTraces;
import io.cistern.cli.trace.Trace;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every legal option of `caching`, alone and with another one, and those of other allocators, over every trace: each
/// operation ends, soon and after few driver calls, and in the end all memory is back with the driver.
final class OptionSweepTests {
    /// Of each option all values, or of numbers the least, the usual one and the most.
    private static final Map<CachingOption<?>, List<String>> VALUES = new LinkedHashMap<>();

    static {
        VALUES.put(CachingOption.SOURCE, List.of("pages", "linear", "vmm", "driver_pool"));
        VALUES.put(CachingOption.PAGE_SIZE, List.of("2MiB", "4MiB", "32MiB", "1GiB"));
        VALUES.put(CachingOption.FIT, List.of("usual", "tight"));
        VALUES.put(CachingOption.REUSE, List.of("never", "adaptive", "wait"));
        VALUES.put(CachingOption.STABLE_MAPPING, List.of("true", "false"));
        VALUES.put(CachingOption.COMPACTION_BYTES, List.of("0", "1GiB"));
        VALUES.put(CachingOption.ALIGNMENT, List.of("256", "4096", "2MiB"));
        VALUES.put(CachingOption.SPLITS, List.of("true", "false"));
        VALUES.put(CachingOption.THREAD_CACHES, List.of("true", "false"));
        VALUES.put(CachingOption.THREAD_CACHE_BYTES, List.of("1MiB", "32MiB", "1GiB"));
        VALUES.put(CachingOption.INITIAL_BYTES, List.of("0", "1GiB"));
        VALUES.put(CachingOption.MAX_BYTES, List.of("64GiB"));
        VALUES.put(CachingOption.CHECK, List.of("off", "checked", "paranoid"));
        VALUES.put(CachingOption.EXPANDABLE_SEGMENTS, List.of("true", "false"));
        VALUES.put(CachingOption.PER_PROCESS_MEMORY_FRACTION, List.of("0.08", "1"));
        VALUES.put(CachingOption.THROW_ON_CUDAMALLOC_OOM, List.of("true", "false"));
    }

    /// Options of the other allocators that have some, with what they need beside them.
    private static final List<String> OTHERS = List.of(
            "async:pool=default",
            "async:pool=current",
            "async:per_stream=true",
            "async:release_threshold=zero",
            "async:release_threshold=0.3",
            "async:release_threshold=adaptive",
            "async:reuse_follow_event_dependencies=false",
            "async:reuse_allow_opportunistic=false",
            "async:reuse_allow_internal_dependencies=false",
            "async:max_size=64GiB",
            "async:handle_types=posix_fd",
            "async:small_pool=1MiB",
            "async:initial_size=1GiB",
            "async:location=host",
            "async:hardware_decompress=false",
            "nccl",
            "vmm",
            "vmm:handle=none",
            "vmm:handle=posix_fd",
            "vmm:alignment=1GiB",
            "vmm:rdma=false",
            "symmetric",
            "symmetric:bytes=2MiB",
            "symmetric:largest=1MiB",
            "symmetric:source=nccl",
            "symmetric:upstream=caching",
            "symmetric:upstream=async");

    /// What an option needs beside it.
    private static final Map<String, String> NEEDED =
            Map.of("throw_on_cudamalloc_oom=true", ",per_process_memory_fraction=0.08");

    private static final long CAPACITY_BYTES = 140L << 30;
    private static final int PASSES = 2;
    private static final int PAIRS = 60;
    private static final int SAMPLES = 5;
    private static final long SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);

    /// An operation takes what idle memory there is, page by page.
    private static final long CALLS_A_PAGE = 4;

    private static final long SMALLEST_PAGE = 2L << 20;
    private static final long FEW_CALLS = 1_000;
    private static final long MAX_SECONDS_AN_OPERATION = 20;

    private static List<String> alone() {
        List<String> specs = new ArrayList<>();
        VALUES.forEach((option, values) -> values.forEach(value -> specs.add(setting(option, value))));
        return specs;
    }

    private static String setting(CachingOption<?> option, String value) {
        String setting = option.key() + '=' + value;
        return setting + NEEDED.getOrDefault(setting, "");
    }

    static Stream<String> everyValue() {
        return alone().stream().map(setting -> "caching:" + setting);
    }

    static List<String> others() {
        return OTHERS;
    }

    static Stream<String> pairs() {
        return drawn(PAIRS);
    }

    /// Pairs that do not contradict each other.
    private static Stream<String> drawn(int count) {
        SplittableRandom random = new SplittableRandom(SEED);
        List<String> settings = alone();
        return Stream.generate(() -> settings.get(random.nextInt(settings.size()))
                        + ','
                        + settings.get(random.nextInt(settings.size())))
                .map(both -> "caching:" + both)
                .filter(OptionSweepTests::isLegal)
                .distinct()
                .limit(count);
    }

    private static boolean isLegal(String spec) {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open()) {
            memory.open(spec);
            return true;
        } catch (ConfigurationException contradiction) {
            return false;
        }
    }

    /// With `paranoid`, which writes and reads every byte, only small programs.
    private static List<Trace> traces(String spec) throws InputException {
        boolean small = spec.contains("check=paranoid");
        List<Trace> traces = new ArrayList<>(small ? List.of() : BundledTraces.readAll());
        for (GeneratedTrace each : GeneratedTrace.values()) {
            traces.add(each.build(
                    GeneratedTrace.USUAL_SEED,
                    small ? GeneratedTrace.MIN_CAPACITY_BYTES : GeneratedTrace.USUAL_CAPACITY_BYTES));
        }
        return traces;
    }

    @Test
    void everyOptionIsSwept() {
        List<CachingOption<?>> all = new ArrayList<>(CachingOption.OWN);
        all.addAll(CachingOption.PYTORCH);
        assertThat(VALUES.keySet()).containsExactlyElementsOf(all);
        assertThat(AsyncOption.ALL)
                .allSatisfy(
                        option -> assertThat(OTHERS).anyMatch(spec -> spec.startsWith("async:" + option.key() + '=')));
    }

    @Test
    void drawnPairsOverSmallPrograms() {
        List<String> specs = drawn(SAMPLES).toList();
        GeneratedTrace[] programs = GeneratedTrace.values();
        for (int i = 0; i < specs.size(); i++) {
            Trace trace = programs[i % programs.length].build(SEED, 1L << 30);
            run(specs.get(i), trace, 4L << 30);
        }
    }

    @Test
    void otherAllocatorsOverASmallProgram() {
        GeneratedTrace[] programs = GeneratedTrace.values();
        for (int i = 0; i < OTHERS.size(); i++) {
            run(OTHERS.get(i), programs[i % programs.length].build(SEED, 128L << 20), 4L << 30);
        }
    }

    @Tag("long")
    @ParameterizedTest
    @MethodSource({"others", "everyValue", "pairs"})
    void everySpecOverEveryTrace(String spec) throws InputException {
        for (Trace trace : traces(spec)) {
            run(spec, trace, CAPACITY_BYTES);
        }
    }

    /// The device has little more than the program asks for, so that memory runs out with many options.
    @Tag("long")
    @ParameterizedTest
    @MethodSource({"others", "everyValue"})
    void everyValueOverEveryTraceOnAFullDevice(String spec) throws InputException {
        for (Trace trace : traces(spec)) {
            run(spec, trace, fullDevice(trace));
        }
    }

    private static long fullDevice(Trace trace) {
        return (trace.requestedPeakBytes() / 100 * 103 + (64L << 20)) >> 21 << 21;
    }

    private static void run(String spec, Trace trace, long capacityBytes) {
        Walk walk = new Walk(spec, trace, capacityBytes, Plugins.catalog());
        FutureTask<Void> task = new FutureTask<>(walk, null);
        Thread thread = Thread.ofPlatform().daemon().name("sweep").start(task);
        int seen = -1;
        try {
            while (true) {
                try {
                    task.get(MAX_SECONDS_AN_OPERATION, TimeUnit.SECONDS);
                    return;
                } catch (TimeoutException stillRunning) {
                    int now = walk.done;
                    assertThat(now)
                            .as("operations done of %s with %s, then %s", trace.name(), spec, stackOf(thread))
                            .isNotEqualTo(seen);
                    seen = now;
                }
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        } catch (ExecutionException e) {
            throw new AssertionError(trace.name() + " with " + spec + " at operation " + walk.done, e.getCause());
        }
    }

    private static String stackOf(Thread thread) {
        return Arrays.stream(thread.getStackTrace()).map(String::valueOf).collect(Collectors.joining("\n    at "));
    }

    /// The passes of one trace with one spec.
    private static final class Walk implements Runnable {
        private final String spec;
        private final Trace trace;
        private final long capacityBytes;
        private final Catalog catalog;
        /// Operations that have ended.
        private volatile int done;

        Walk(String spec, Trace trace, long capacityBytes, Catalog catalog) {
            this.spec = spec;
            this.trace = trace;
            this.capacityBytes = capacityBytes;
            this.catalog = catalog;
        }

        @Override
        public void run() {
            try (SimulatedGpu gpu = SimulatedGpu.builder()
                    .devices(1)
                    .capacityBytes(capacityBytes)
                    .build()) {
                try (DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(catalog).open()) {
                    memory.setCurrent(spec);
                    long[] streams = new long[trace.streamCount()];
                    Arrays.setAll(streams, _ -> gpu.streams().create(0));
                    for (int pass = 0; pass < PASSES; pass++) {
                        walk(gpu, memory, streams);
                    }
                    for (long stream : streams) {
                        memory.streamClosing(0, stream);
                        gpu.streams().destroy(0, stream);
                    }
                }
                assertThat(gpu.misuses()).isEmpty();
                gpu.devices().synchronize(0); // until then the driver's default pool keeps what it has
                assertThat(gpu.memory().freeBytes(0))
                        .as("free in the end")
                        .isEqualTo(gpu.memory().info(0).totalBytes());
            }
        }

        private void walk(SimulatedGpu gpu, DeviceMemory memory, long[] streams) {
            long[] addresses = new long[trace.slotCount()];
            long[] owners = new long[trace.slotCount()];
            long mostCalls = FEW_CALLS + CALLS_A_PAGE * (trace.requestedPeakBytes() / SMALLEST_PAGE);
            long event = gpu.events().create(0);
            long before = gpu.calls().ofAllocators();
            for (int row = 0; row < trace.ops().length; row++) {
                long clock = gpu.virtualNanos();
                int slot = trace.slots()[row];
                long stream = streams[trace.streams()[row]];
                switch (trace.ops()[row]) {
                    case Trace.ALLOCATE -> {
                        addresses[slot] = allocate(memory, trace.byteSizes()[row], stream);
                        owners[slot] = stream;
                    }
                    case Trace.FREE -> {
                        memory.free(addresses[slot], stream);
                        addresses[slot] = 0;
                    }
                    case Trace.USE -> {
                        if (addresses[slot] != 0) {
                            memory.recordUse(addresses[slot], stream);
                        }
                    }
                    case Trace.WAIT -> {
                        gpu.events().record(0, event, streams[slot]);
                        gpu.streams().await(0, stream, event);
                    }
                    default -> memory.streamClosing(0, stream);
                }
                done++;
                if (gpu.virtualNanos() != clock) { // counting them takes longer than most operations
                    long now = gpu.calls().ofAllocators();
                    assertThat(now - before).as("driver calls").isLessThanOrEqualTo(mostCalls);
                    before = now;
                }
            }
            for (int slot = 0; slot < addresses.length; slot++) {
                memory.free(addresses[slot], owners[slot]);
            }
            gpu.events().destroy(0, event);
        }

        private long allocate(DeviceMemory memory, long byteSize, long stream) {
            try {
                return memory.allocate(byteSize, 0, stream);
            } catch (DeviceOutOfMemoryException tooMuch) {
                return 0;
            }
        }
    }
}
