package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.Streams;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Arenas that need another chunk: on several threads at once, where memory is short, and for more than there can be.
class ArenaGrowthTests {
    private static final long MIB = 1 << 20;
    private static final long CAPACITY = 64 * MIB;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().capacityBytes(CAPACITY).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .open();
    private final CudaStream stream = CudaStream.open(memory, 0);

    @AfterEach
    void close() {
        stream.close();
        memory.close();
        gpu.close();
    }

    private DeviceArena.Builder arena() {
        return DeviceArena.builder(memory);
    }

    @Test
    void whatAnArenaTakesAndFreesInACaptureStaysWithTheGraph() {
        DeviceArena arena = arena().name("captured").open(stream);
        long before = arena.allocate(MIB);
        try (GraphCapture capture = GraphCapture.begin(stream, CaptureMode.GLOBAL)) {
            long grown = arena.allocate(2 * MIB);
            arena.close();
            try (CudaGraph graph = capture.endAndInstantiate()) {
                graph.launch(stream);
                assertThat(GraphMemory.kept(memory))
                        .extracting(KeptBlock::address)
                        .containsExactlyInAnyOrder(before, grown);
            }
        }
    }

    /// Some threads take small pieces until others, whose pieces are larger than the first chunk, have theirs.
    @Test
    void everyThreadOfASharedArenaGetsMemoryOfItsOwn() throws Exception {
        for (int round = 0; round < 500; round++) {
            try (DeviceArena arena = arena().name("round" + round).shared().open(stream)) {
                ConcurrentSkipListMap<Long, Long> taken = new ConcurrentSkipListMap<>();
                LongAdder pieces = new LongAdder();
                AtomicBoolean done = new AtomicBoolean();
                Thread small = taking(arena, 256, done::get, taken, pieces);
                Thread large = taking(arena, 2 * MIB, () -> false, taken, pieces);
                large.join();
                done.set(true);
                small.join();
                assertThat(taken).hasSize(pieces.intValue()).doesNotContainKey(0L);
                long end = 0;
                for (var each : taken.entrySet()) {
                    assertThat(each.getKey()).isGreaterThanOrEqualTo(end);
                    end = each.getKey() + each.getValue();
                }
            }
        }
    }

    private static Thread taking(
            DeviceArena arena, long byteSize, BooleanSupplier enough, Map<Long, Long> taken, LongAdder pieces) {
        return Thread.ofPlatform().start(() -> {
            for (int i = 0; i < (byteSize > MIB ? 4 : 50_000) && !enough.getAsBoolean(); i++) {
                taken.put(arena.allocate(byteSize), byteSize);
                pieces.increment();
            }
        });
    }

    @Test
    void anArenaThatCannotDoubleGrowsByWhatIsAskedFor() {
        try (DeviceArena arena = arena().open(stream)) {
            arena.allocate(40 * MIB);
            assertThat(arena.allocate(MIB)).isNotZero();
            assertThat(arena.reservedBytes()).isEqualTo(41 * MIB);
        }
        try (DeviceArena next = arena().open(stream); // begins with as much
                DeviceBuffer other = DeviceBuffer.allocate(memory, 40 * MIB, 0, stream.handle())) {
            assertThat(next.allocate(MIB)).isNotZero().isNotEqualTo(other.address());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatNobodyHasIsRefusedAndChangesNothing(boolean shared) {
        for (long byteSize :
                new long[] {CAPACITY + 1, 1L << 62, Long.MAX_VALUE - 256, Long.MAX_VALUE - 1, Long.MAX_VALUE}) {
            try (DeviceArena arena = (shared ? arena().shared() : arena()).open(stream)) {
                for (int i = 0; i < 3; i++) {
                    assertThatThrownBy(() -> arena.buffer(byteSize)).isInstanceOf(DeviceOutOfMemoryException.class);
                    assertThat(arena.usedBytes()).isEqualTo(i * 256);
                    assertThat(arena.allocate(1)).isNotZero();
                }
            }
        }
    }

    private DeviceArena ofThreeChunks(long on) {
        DeviceArena arena = arena().shared().open(0, on);
        for (long bytes : new long[] {MIB, 3 * MIB, 9 * MIB}) {
            arena.allocate(bytes);
        }
        return arena;
    }

    @Test
    void allOtherChunksGoBackThoughOneIsGone() {
        DeviceArena arena = ofThreeChunks(stream.handle());
        memory.free(memory.liveBlocks().getFirst().address(), stream.handle());
        assertThatThrownBy(arena::close).isInstanceOf(UnknownAddressException.class);
        assertThat(memory.liveBlocks()).isEmpty();
    }

    @Test
    void anArenaOfAThreadsStreamEndsOnNoVirtualThread() throws InterruptedException {
        DeviceArena arena = ofThreeChunks(Streams.PER_THREAD_DEFAULT);
        List<Throwable> refusals = new ArrayList<>();
        for (Runnable end : List.<Runnable>of(arena::reset, arena::close)) {
            Thread.ofVirtual()
                    .start(() -> refusals.add(catchThrowable(end::run)))
                    .join();
        }
        assertThat(refusals).hasSize(2).hasOnlyElementsOfType(UnusableStreamException.class);
        assertThat(arena.generation()).isEqualTo(1);
        arena.close();
        assertThat(memory.liveBlocks()).isEmpty();
    }
}
