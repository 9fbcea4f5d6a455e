package io.cistern.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cistern.AllocatorStatistics;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CaptureMode;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Blocks that graphs keep are charged to each limit and counted like every other block, with each allocator.
final class GraphLimitsTests {
    private static final int DEVICE = 0;
    private static final long MIB = 1 << 20;

    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory =
            DeviceMemory.builder(gpu).catalog(Plugins.catalog()).open();
    private final CudaStream stream = CudaStream.open(memory, DEVICE);
    private final List<CudaGraph> graphs = new ArrayList<>();

    static List<String> specs() {
        return EverySpec.list();
    }

    @AfterEach
    void close() {
        graphs.forEach(CudaGraph::close);
        stream.close();
        memory.close();
        gpu.close();
    }

    /// What a program does with a block around a capture.
    private enum Use {
        SCRATCH,
        RESULT,
        FROM_BEFORE
    }

    /// @return whether a limit refused
    private boolean captures(Use use) {
        long block = 0;
        try {
            if (use == Use.FROM_BEFORE) {
                block = memory.allocate(MIB, DEVICE, stream.handle());
            }
            try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL)) {
                if (use != Use.FROM_BEFORE) {
                    block = memory.allocate(MIB, DEVICE, stream.handle());
                }
                if (use != Use.RESULT) {
                    memory.free(block, stream.handle());
                }
                if (use == Use.SCRATCH) {
                    memory.free(memory.allocate(MIB, DEVICE, stream.handle()), stream.handle());
                }
                graphs.add(capture.endAndInstantiate());
            }
            return false;
        } catch (DeviceOutOfMemoryException refused) {
            assertThat(refused.isByLimit()).isTrue();
            return true;
        }
    }

    private void fill(LongSupplier used, LongSupplier requested) {
        for (Use use : Use.values()) {
            for (int i = 0; i < 2; i++) {
                assertThat(captures(use)).as("%s %d", use, i).isFalse();
                assertThat(used.getAsLong()).as("used %s %d", use, i).isEqualTo(requested.getAsLong());
            }
        }
        assertThat(used.getAsLong()).isEqualTo(6 * MIB);
        for (Use use : Use.values()) {
            assertThat(captures(use)).as("%s beyond the limit", use).isTrue();
            assertThat(used.getAsLong()).isEqualTo(requested.getAsLong()).isEqualTo(6 * MIB);
        }
        memory.liveBlocks().forEach(block -> memory.free(block.address(), stream.handle()));
        assertThat(used.getAsLong()).as("the graphs use the results").isEqualTo(6 * MIB);
    }

    private void letGo() {
        graphs.forEach(CudaGraph::close);
        memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aPoolIsChargedForWhatItsGraphsKeep(String spec) {
        try (MemoryPool pool =
                MemoryPool.builder(memory).spec(spec).limitBytes(6 * MIB).open()) {
            LongSupplier used = () -> pool.limit().usedBytes();
            LongSupplier requested = () -> pool.statistics(DEVICE).requestedBytes();
            try (Scope _ = pool.enter()) {
                fill(used, requested);
            }
            letGo();
            assertThat(used.getAsLong()).isEqualTo(requested.getAsLong()).isZero();
        }
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aScopeIsChargedForWhatItsGraphsKeep(String spec) {
        memory.setCurrent(spec);
        MemoryLimit limit = MemoryLimit.of("request", 6 * MIB);
        LongSupplier requested = () -> memory.statistics(DEVICE).requestedBytes();
        try (Scope _ = memory.current(DEVICE).enter(ScopeOptions.all().limit(limit))) {
            fill(limit::usedBytes, requested);
        }
        letGo();
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong()).isZero();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aDeviceIsChargedForWhatItsGraphsKeep(String spec) {
        memory.setCurrent(spec);
        MemoryLimit limit = memory.limits().device(DEVICE);
        limit.setByteSize(6 * MIB);
        LongSupplier requested = () -> memory.statistics(DEVICE).requestedBytes();
        fill(limit::usedBytes, requested);
        letGo();
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong()).isZero();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void theFirstLimitOfADeviceCountsWhatGraphsKeep(String spec) {
        memory.setCurrent(spec);
        firstLimitCounts(memory.limits().device(DEVICE));
    }

    @ParameterizedTest
    @MethodSource("specs")
    void theFirstLimitOfAnAllocatorCountsWhatGraphsKeep(String spec) {
        firstLimitCounts(memory.setCurrent(spec).limit());
    }

    private void firstLimitCounts(MemoryLimit limit) {
        for (Use use : Use.values()) {
            captures(use);
        }
        LongSupplier requested = () -> memory.statistics(DEVICE).requestedBytes();
        limit.setByteSize(4 * MIB);
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong()).isEqualTo(3 * MIB);
        memory.liveBlocks().forEach(block -> memory.free(block.address(), stream.handle()));
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong()).isEqualTo(3 * MIB);
        GraphMemory shared = graphs.getFirst().memory();
        try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL, shared)) {
            long again = memory.allocate(MIB, DEVICE, stream.handle());
            assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong());
            memory.free(again, stream.handle());
            graphs.add(capture.endAndInstantiate());
        }
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong());
        letGo();
        assertThat(limit.usedBytes()).isEqualTo(requested.getAsLong()).isZero();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aRefusedCallChangesNoCounter(String spec) {
        try (MemoryPool pool = MemoryPool.builder(memory)
                        .spec(spec)
                        .limitBytes(4 * MIB)
                        .open();
                Scope _ = pool.enter()) {
            long before = memory.allocate(MIB, DEVICE, stream.handle());
            long result;
            try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL)) {
                result = memory.allocate(MIB, DEVICE, stream.handle());
                memory.free(before, stream.handle());
                graphs.add(capture.endAndInstantiate());
            }
            AllocatorStatistics counted = counts(pool);
            assertThat(counted.allocations()).isEqualTo(2);
            assertThat(counted.frees()).isZero();
            memory.free(result, stream.handle());
            assertThat(counts(pool)).as("the graph keeps it").isEqualTo(counted);
            for (int i = 0; i < 3; i++) {
                for (long freed : new long[] {before, result, result + MIB}) {
                    assertThatExceptionOfType(UnknownAddressException.class)
                            .isThrownBy(() -> memory.free(freed, stream.handle()));
                }
                assertThatExceptionOfType(DeviceOutOfMemoryException.class)
                        .isThrownBy(() -> memory.allocate(3 * MIB, DEVICE, stream.handle()));
                assertThat(counts(pool)).isEqualTo(counted);
            }
            letGo();
            counted = counts(pool);
            assertThat(counted.frees()).isEqualTo(2);
            assertThat(counted.requestedPeakBytes()).isBetween(2 * MIB, 2 * MIB + (64 << 10));
            assertThat(counted.requestedTotalBytes()).isEqualTo(2 * MIB);
        }
    }

    private static AllocatorStatistics counts(MemoryPool pool) {
        return pool.statistics(DEVICE);
    }
}
