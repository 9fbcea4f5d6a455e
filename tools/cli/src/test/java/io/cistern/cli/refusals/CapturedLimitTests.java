package io.cistern.cli.refusals;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Limits count what is allocated on captured streams until the graph is gone, with every allocator; memory that serves
/// again counts once.
final class CapturedLimitTests {
    private static final long BLOCK = 2 << 20;
    private static final long LIMIT = 2 * BLOCK + BLOCK / 2;
    private static final Catalog CATALOG = Plugins.catalog();

    /// What a limit is set on.
    private enum On {
        DEVICE,
        ALLOCATOR,
        SCOPE,
        POOL
    }

    static Stream<Arguments> limits() {
        Map<String, String> firstByName = new LinkedHashMap<>();
        TestedSpecs.ALL.forEach(spec -> firstByName.putIfAbsent(spec.split(":", 2)[0], spec));
        return firstByName.values().stream()
                .flatMap(spec -> Stream.of(On.values())
                        .filter(on -> on != On.POOL || spec.equals("caching") || spec.equals("async"))
                        .map(on -> Arguments.of(spec, on)));
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aLimitCountsTheMemoryOfAGraph(String spec, On on) {
        MemoryLimit limit = MemoryLimit.of("some limit", LIMIT);
        try (SimulatedGpu gpu = SimulatedGpu.builder()
                        .devices(1)
                        .capacityBytes(256 << 20)
                        .build();
                DeviceMemory memory = opened(gpu, on, limit)) {
            long stream = gpu.streams().create(0);
            try (Source source = source(memory, spec, on, limit)) {
                check(memory, source, limit, stream);
            }
        }
    }

    private static void check(DeviceMemory memory, Source source, MemoryLimit limit, long stream) {
        long first;
        long again;
        try (GraphCapture capture = GraphCapture.begin(memory, 0, stream, CaptureMode.RELAXED)) {
            first = source.allocate.applyAsLong(stream);
            long second = source.allocate.applyAsLong(stream);
            assertThat(limit.usedBytes()).isEqualTo(2 * BLOCK);
            refuses(source, stream);
            memory.free(second, stream);
            assertThat(limit.usedBytes()).as("after a free in the capture").isEqualTo(2 * BLOCK);
            again = source.allocate.applyAsLong(stream);
            assertThat(limit.usedBytes()).isEqualTo(2 * BLOCK);
            refuses(source, stream);
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(stream);
                memory.free(first, stream);
                assertThat(limit.usedBytes())
                        .as("after a free outside the capture")
                        .isEqualTo(2 * BLOCK);
            }
        }
        memory.free(again, stream);
        GraphMemory.collect(memory);
        assertThat(limit.usedBytes()).isZero();
    }

    private static void refuses(Source source, long stream) {
        assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                .isThrownBy(() -> source.allocate.applyAsLong(stream))
                .matches(DeviceOutOfMemoryException::isByLimit)
                .withMessageContaining("some limit");
    }

    private static DeviceMemory opened(SimulatedGpu gpu, On on, MemoryLimit limit) {
        DeviceMemory.Builder builder = DeviceMemory.builder(gpu).catalog(CATALOG);
        return (on == On.DEVICE ? builder.limit(limit) : builder).open();
    }

    /// @param allocate serves a stream with a block
    private record Source(LongUnaryOperator allocate, Runnable closing) implements AutoCloseable {
        @Override
        public void close() {
            closing.run();
        }
    }

    private static Source source(DeviceMemory memory, String spec, On on, MemoryLimit limit) {
        if (on == On.POOL) {
            MemoryPool pool = MemoryPool.builder(memory).spec(spec).limit(limit).open();
            return new Source(stream -> pool.allocate(BLOCK, 0, stream), pool::close);
        }
        OpenOptions options = OpenOptions.spec(spec);
        Allocator allocator = memory.open(on == On.ALLOCATOR ? options.limit(limit) : options);
        return new Source(
                stream -> {
                    try (Scope _ =
                            on == On.SCOPE ? allocator.enter(ScopeOptions.all().limit(limit)) : allocator.enter()) {
                        return memory.allocate(BLOCK, 0, stream);
                    }
                },
                () -> {});
    }
}
