package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.networknt.schema.InputFormat;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.cuda.CaptureMode;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.observability.MemorySnapshot.Block;
import io.cistern.observability.MemorySnapshot.Segment;
import io.cistern.observability.MemorySnapshot.State;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryStatistics;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import net.razorvine.pickle.Unpickler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// What a snapshot shows, and how it is written.
final class MemorySnapshotTests extends ObservedMemory {
    private static List<Block> blocks(MemorySnapshot snapshot, State state) {
        return snapshot.segments().stream()
                .flatMap(segment -> segment.blocks().stream())
                .filter(block -> block.state() == state)
                .toList();
    }

    @Test
    void everyBlockStandsInItsSegmentWithItsState() {
        history.start(HistoryOptions.withStacks());
        long kept = allocate(3 * MIB);
        try (CudaStream other = CudaStream.open(memory, DEVICE)) {
            long shared = allocate(8 * MIB);
            gpu.copies().fillWords(DEVICE, shared, 1, MIB, other.handle());
            memory.recordUse(shared, other.handle());
            free(shared);
            free(allocate(700)); // the thread's cache keeps it
            MemorySnapshot snapshot = MemorySnapshot.take(memory);
            assertThat(blocks(snapshot, State.LIVE)).singleElement().satisfies(block -> {
                assertThat(block.address()).isEqualTo(kept);
                assertThat(block.requestedBytes()).isEqualTo(3 * MIB);
                assertThat(block.stream()).hasValue(stream);
                assertThat(block.thread()).contains(Thread.currentThread().getName());
                assertThat(block.site().getFirst().getClassName()).startsWith(ObservedMemory.class.getName());
            });
            assertThat(blocks(snapshot, State.WAITING))
                    .extracting(Block::byteSize)
                    .containsExactly(8 * MIB);
            assertThat(blocks(snapshot, State.CACHED)).isNotEmpty();
            assertThat(snapshot.segments().stream().mapToLong(Segment::byteSize).sum())
                    .isEqualTo(memory.current(DEVICE).reservedBytes(DEVICE).orElseThrow());
        }
        free(kept);
    }

    @Test
    void aScopeThatCarriedCodeLeftOpenIsNoScopeOfLaterBlocks() {
        history.start(HistoryOptions.withoutStacks());
        try (MemoryPool pool = memory.pools().open("caching")) {
            long address;
            try (Scope _ = pool.enter()) {
                Scope[] left = new Scope[1];
                ScopeCarrier.capture(memory)
                        .run(() -> left[0] = memory.current(DEVICE).enter());
            }
            address = allocate(MIB);
            assertThat(blocks(MemorySnapshot.take(memory), State.LIVE))
                    .singleElement()
                    .satisfies(block -> assertThat(block.scope()).isEmpty());
            free(address);
        }
    }

    @Test
    void theHistoryOfAFormerBlockDescribesNoLaterOne() {
        history.start(HistoryOptions.withStacks());
        long former = allocate(MIB);
        free(former);
        history.stop();
        assertThat(allocate(MIB)).isEqualTo(former);
        assertThat(blocks(MemorySnapshot.take(memory), State.LIVE))
                .singleElement()
                .satisfies(block -> assertThat(block.ageNanos()).isEmpty());
        free(former);
    }

    @Test
    void aBlockNamesTheScopeThatItWasAllocatedIn() throws IOException {
        history.start(HistoryOptions.withoutStacks());
        long outside = allocate(MIB);
        long inside;
        try (MemoryPool pool = memory.pools().open("caching")) {
            try (Scope _ = pool.enter()) {
                inside = allocate(2 * MIB);
            }
            MemorySnapshot snapshot = MemorySnapshot.take(memory);
            assertThat(blocks(snapshot, State.LIVE))
                    .anySatisfy(block -> {
                        assertThat(block.address()).isEqualTo(inside);
                        assertThat(block.scope())
                                .hasValueSatisfying(scope -> assertThat(scope).isNotEmpty());
                    })
                    .anySatisfy(block -> {
                        assertThat(block.address()).isEqualTo(outside);
                        assertThat(block.scope()).isEmpty();
                    });
            ByteArrayOutputStream json = new ByteArrayOutputStream();
            snapshot.writeJson(json);
            assertThat(json.toString(StandardCharsets.UTF_8)).contains("\"scope\"");
            free(inside);
        }
        free(outside);
    }

    @Test
    @Timeout(60)
    void aBlockThatAGraphKeepsNamesTheGraph() {
        assertKeptByItsGraph();
    }

    @Test
    @Timeout(60)
    void soDoesOneOfAnAllocatorWithoutSegments() {
        memory.currents().set(memory.open(OpenOptions.made("mine", plugInOn(gpu))));
        assertKeptByItsGraph();
    }

    private void assertKeptByItsGraph() {
        long block = allocate(3 * MIB);
        GraphMemory ofGraph;
        try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
            ofGraph = capture.memory();
            free(block);
            try (CudaGraph _ = capture.endAndInstantiate()) {
                MemorySnapshot snapshot = MemorySnapshot.take(memory);
                assertThat(blocks(snapshot, State.WAITING)).singleElement().satisfies(kept -> {
                    assertThat(kept.address()).isEqualTo(block);
                    assertThat(kept.graph()).contains(ofGraph.toString());
                    assertThat(kept.requestedBytes()).isZero();
                });
                assertThat(blocks(snapshot, State.CACHED)).isEmpty();
                assertThat(memory.liveBlocks()).isEmpty();
            }
        }
        while (!ofGraph.isGone()) { // the driver tells later
            LockSupport.parkNanos(Duration.ofMillis(1).toNanos());
        }
        GraphMemory.collect(memory);
        assertThat(GraphMemory.kept(memory)).isEmpty();
    }

    private static DeviceAllocator plugInOn(SimulatedGpu driver) {
        return new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return driver.memory().allocate(device, byteSize);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                driver.memory().free(device, address);
            }
        };
    }

    /// A context takes hundreds of MiB of a device.
    @Test
    void aDeviceThatNobodyUsesIsLeftAlone() throws IOException {
        try (SimulatedGpu two = SimulatedGpu.builder().devices(2).build();
                DeviceMemory unused = DeviceMemory.builder(two).open()) {
            assertThat(MemorySnapshot.take(unused).devices()).isEmpty();
            assertThat(two.devices().isUsed(0)).isFalse();
            unused.currents().set(unused.open(OpenOptions.made("none", plugInOn(two))));
            unused.free(unused.allocate(MIB, 1, 0), 0);
            MemorySnapshot snapshot = MemorySnapshot.take(unused);
            assertThat(snapshot.devices())
                    .extracting(MemorySnapshot.Device::ordinal)
                    .containsExactly(1);
            snapshot.writePickle(new ByteArrayOutputStream());
        }
    }

    /// A plug-in that takes long to tell what it holds.
    private abstract static class SlowPlugIn implements DeviceAllocator, MemoryStatistics {
        static final Duration TAKES = Duration.ofMillis(500);

        @Override
        public List<SegmentMemory> segments(int device) {
            LockSupport.parkNanos(TAKES.toNanos());
            return List.of();
        }
    }

    @Test
    void agesCountBackFromTheMomentThatTheSnapshotTells() {
        DeviceAllocator plugIn = plugInOn(gpu);
        DeviceAllocator slow = new SlowPlugIn() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return plugIn.allocate(byteSize, device, stream);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                plugIn.free(address, byteSize, device, stream);
            }
        };
        history.start(HistoryOptions.withoutStacks());
        long address = memory.open(OpenOptions.made("slow", slow)).allocate(100, DEVICE, stream);
        long began = System.nanoTime();
        MemorySnapshot snapshot = MemorySnapshot.take(memory);
        assertThat(System.nanoTime() - began).isGreaterThanOrEqualTo(SlowPlugIn.TAKES.toNanos());
        MemorySnapshot.History recorded = snapshot.history().orElseThrow();
        HistoryEntry birth = recorded.entries().stream()
                .filter(entry -> entry.event() instanceof MemoryEvent.Allocated)
                .findFirst()
                .orElseThrow();
        Duration age = Duration.ofNanos(
                blocks(snapshot, State.LIVE).getFirst().ageNanos().orElseThrow());
        Instant born = recorded.startedAt().plusNanos(birth.nanos() - recorded.startNanos());
        assertThat(Duration.between(born.plus(age), snapshot.takenAt()).abs())
                .isLessThan(SlowPlugIn.TAKES.dividedBy(2));
        memory.free(address, stream);
    }

    @Test
    void blocksOfAPlugInAreShownToo() {
        long address = memory.open(OpenOptions.made("mine", plugInOn(gpu))).allocate(100, DEVICE, stream);
        MemorySnapshot snapshot = MemorySnapshot.take(memory);
        assertThat(snapshot.segments()).singleElement().satisfies(segment -> {
            assertThat(segment.allocator()).isEqualTo("mine");
            assertThat(segment.reported()).isFalse();
            assertThat(segment.address()).isEqualTo(address);
        });
        free(address);
    }

    @Test
    void theJsonIsAsItsSchemaSays() throws IOException {
        String json = json(busySnapshot());
        String schema;
        try (InputStream in = MemorySnapshot.schema()) {
            schema = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        var checked = SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12)
                .getSchema(schema, InputFormat.JSON);
        assertThat(checked.validate(json, InputFormat.JSON)).isEmpty();
        assertThat(checked.validate(json.replace("\"live\"", "\"alive\""), InputFormat.JSON))
                .as("a schema that refuses")
                .isNotEmpty();
        assertThat(json)
                .contains("\"event\":\"annotated\"", "\"text\":\"step 1\"", "\"outOfMemory\":{", "\"pool\":\"grads\"");
    }

    private static String json(MemorySnapshot snapshot) throws IOException {
        var out = new ByteArrayOutputStream();
        snapshot.writeJson(out);
        return out.toString(StandardCharsets.UTF_8);
    }

    /// A snapshot of a refusal, with a history of most kinds of events.
    private MemorySnapshot busySnapshot() {
        history.start(HistoryOptions.withStacks());
        List<MemorySnapshot> taken = new ArrayList<>();
        try (Registration _ = memory.listeners().onEvent(event -> {
                    if (event instanceof MemoryEvent.OutOfMemory refusal) {
                        taken.add(MemorySnapshot.take(memory, refusal.report()));
                    }
                });
                CudaStream other = CudaStream.open(memory, DEVICE);
                CudaStream third = CudaStream.open(memory, DEVICE);
                MemoryPool pool = MemoryPool.builder(memory).tag("grads").open()) {
            memory.listeners().annotate("step 1");
            long inPool;
            try (Scope _ = pool.enter()) {
                inPool = allocate(5 * MIB);
            }
            long shared = allocate(8 * MIB);
            memory.recordUse(shared, other.handle());
            free(shared);
            third.await(other);
            memory.setCurrent("caching");
            memory.trim(DEVICE, 0, io.cistern.spi.TrimMode.SYNCHRONIZE);
            assertThatThrownBy(() -> allocate(300 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            free(inPool);
        }
        return taken.getFirst();
    }

    @Test
    void aPickleHasWhatPyTorchsSnapshotsHave() throws IOException {
        var out = new ByteArrayOutputStream();
        busySnapshot().writePickle(out);
        Map<?, ?> read = (Map<?, ?>) new Unpickler().load(new ByteArrayInputStream(out.toByteArray()));
        assertThat(read.keySet().stream().map(String::valueOf))
                .containsExactlyInAnyOrder("segments", "device_traces", "allocator_settings", "external_annotations");
        List<?> trace = (List<?>) ((List<?>) read.get("device_traces")).getFirst();
        assertThat(trace.stream().map(entry -> String.valueOf(((Map<?, ?>) entry).get("action"))))
                .contains("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom");
        for (Object each : (List<?>) read.get("segments")) {
            Map<?, ?> segment = (Map<?, ?>) each;
            long bytes = ((List<?>) segment.get("blocks"))
                    .stream()
                            .mapToLong(block -> ((Number) ((Map<?, ?>) block).get("size")).longValue())
                            .sum();
            assertThat(((Number) segment.get("total_size")).longValue()).isEqualTo(bytes);
        }
    }

    @Test
    void eventsOfOnePlaceShareItsFramesInAPickle() throws IOException {
        history.start(HistoryOptions.withStacks());
        int events = 2000;
        for (int i = 0; i < events / 2; i++) {
            free(allocate(1000));
        }
        var out = new ByteArrayOutputStream();
        MemorySnapshot.take(memory).writePickle(out);
        assertThat(out.size()).as("bytes").isLessThan(events * 200);
        Map<?, ?> read = (Map<?, ?>) new Unpickler().load(new ByteArrayInputStream(out.toByteArray()));
        List<?> trace = (List<?>) ((List<?>) read.get("device_traces")).getFirst();
        assertThat(trace.size()).isGreaterThan(events);
        assertThat(trace)
                .allSatisfy(entry ->
                        assertThat((List<?>) ((Map<?, ?>) entry).get("frames")).isNotEmpty());
    }

    @Test
    void aPickleTellsWhichSegmentsCanGrow() throws IOException {
        long pages = allocate(MIB);
        long whole = memory.open("caching:expandable_segments=false").allocate(MIB, DEVICE, stream);
        long alone = memory.open("direct").allocate(MIB, DEVICE, stream);
        var out = new ByteArrayOutputStream();
        MemorySnapshot.take(memory).writePickle(out);
        Map<?, ?> read = (Map<?, ?>) new Unpickler().load(new ByteArrayInputStream(out.toByteArray()));
        Map<Long, Object> expandable = new HashMap<>();
        for (Object each : (List<?>) read.get("segments")) {
            Map<?, ?> segment = (Map<?, ?>) each;
            for (Object block : (List<?>) segment.get("blocks")) {
                expandable.put(((Number) ((Map<?, ?>) block).get("address")).longValue(), segment.get("is_expandable"));
            }
        }
        assertThat(expandable)
                .containsEntry(pages, true)
                .containsEntry(whole, false)
                .containsEntry(alone, false);
        free(pages);
        free(whole);
        free(alone);
    }

    @Test
    void theNameOfTheFileSaysTheFormat(@TempDir Path folder) throws IOException {
        MemorySnapshot snapshot = MemorySnapshot.take(memory);
        snapshot.write(folder.resolve("a.json"));
        snapshot.write(folder.resolve("a.pickle"));
        assertThat(Files.readString(folder.resolve("a.json"))).startsWith("{\"format\":\"cistern-snapshot\"");
        assertThat(Files.readAllBytes(folder.resolve("a.pickle"))).startsWith(0x80);
    }
}
