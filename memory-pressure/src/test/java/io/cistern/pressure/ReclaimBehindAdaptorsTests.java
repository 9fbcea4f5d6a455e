package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.adaptors.LimitAllocator;
import io.cistern.adaptors.StatisticsAllocator;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Behind any adaptor a request is served that the allocator alone serves, if need be after trims and waits.
final class ReclaimBehindAdaptorsTests {
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 256 * MIB;
    private static final int STREAMS = 4;
    private static final long FIRST_SEED = Long.getLong("cistern.testkit.seed", 20_260_101L);
    private static final int SEEDS = 8;
    private static final List<String> ALLOCATORS = List.of("caching", "caching:source=linear", "direct");

    /// What an adaptor must be given besides its upstream.
    private static final Map<String, String> GIVEN = Map.of(
            "aligned", "alignment=256,",
            "events", "threshold=1TiB,",
            "limit", "bytes=1TiB,",
            "logging", "file=/dev/null,");

    private static final Map<String, UnaryOperator<DeviceAllocator>> AROUND = Map.of(
            "an adaptor", Plain::new,
            "an arbiter", TaskArbiter::new,
            "an adaptor around an arbiter", upstream -> new Plain(new TaskArbiter(upstream)),
            "a limit", upstream -> new LimitAllocator(upstream, Long.MAX_VALUE),
            "statistics", StatisticsAllocator::new);

    private static final class Plain extends AllocatorAdaptor {
        Plain(DeviceAllocator upstream) {
            super(upstream);
        }
    }

    /// Opens the allocator to test and makes it current.
    private interface Opening {
        void open(DeviceMemory memory);
    }

    static Stream<Arguments> adaptors() {
        List<Arguments> all = new ArrayList<>();
        for (String allocator : ALLOCATORS) {
            int[] alone = LongStream.range(FIRST_SEED, FIRST_SEED + SEEDS)
                    .mapToInt(seed -> served(seed, memory -> memory.setCurrent(allocator)))
                    .toArray();
            for (AllocatorProvider provider : ServiceLoader.load(AllocatorProvider.class)) {
                if (provider.options().stream().map(SpecOption::key).anyMatch("upstream"::equals)) {
                    String spec = provider.name() + ":" + GIVEN.getOrDefault(provider.name(), "") + "upstream=\""
                            + allocator + "\"";
                    Opening opening = memory -> memory.setCurrent(spec);
                    all.add(arguments(spec, alone, opening));
                }
            }
            AROUND.forEach((name, adaptor) -> {
                Opening opening = memory -> memory.currents()
                        .set(memory.open(OpenOptions.around("around", memory.setCurrent(allocator), adaptor)));
                all.add(arguments(name + " around " + allocator, alone, opening));
            });
        }
        return all.stream();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("adaptors")
    void whatTheAllocatorServesIsServedBehindIt(String name, int[] alone, Opening adaptor) {
        int needed = 0;
        for (int i = 0; i < SEEDS; i++) {
            int served = alone[i];
            assertThat(served(FIRST_SEED + i, adaptor))
                    .as("%s, seed %d", name, FIRST_SEED + i)
                    .isGreaterThanOrEqualTo(served);
            needed += served;
        }
        assertThat(needed).isGreaterThan(SEEDS * 10);
    }

    /// Runs a program until a request is refused, or its task is told to give something up.
    ///
    /// @return the requests that were served before
    private static int served(long seed, Opening opening) {
        try (SimulatedGpu gpu = SimulatedGpu.builder().capacityBytes(CAPACITY).build();
                DeviceMemory memory =
                        DeviceMemory.builder(gpu).catalog(SmallGpu.catalog()).open()) {
            opening.open(memory);
            TaskArbiter arbiter = memory.current(0).extension(TaskArbiter.class).orElse(null);
            return arbiter == null
                    ? run(memory, gpu, new Random(seed))
                    : arbiter.task(1, 0).call(() -> run(memory, gpu, new Random(seed)));
        }
    }

    private static int run(DeviceMemory memory, SimulatedGpu gpu, Random random) {
        long[] streams =
                random.ints(STREAMS).mapToLong(_ -> gpu.streams().create(0)).toArray();
        List<Long> live = new ArrayList<>();
        int served = 0;
        try {
            while (served < 200) {
                long stream = streams[random.nextInt(STREAMS)];
                switch (random.nextInt(4)) {
                    case 0 -> gpu.keepBusy(0, stream, 1 + random.nextInt(10_000_000));
                    case 1 -> {
                        if (!live.isEmpty()) {
                            memory.free(live.remove(random.nextInt(live.size())), stream);
                        }
                    }
                    default -> {
                        live.add(memory.allocate(1 + (long) (random.nextDouble() * 80 * MIB), 0, stream));
                        served++;
                    }
                }
            }
        } catch (DeviceOutOfMemoryException | TaskOom refused) {
            // the program ends here
        }
        live.forEach(address -> memory.free(address, streams[0]));
        return served;
    }
}
