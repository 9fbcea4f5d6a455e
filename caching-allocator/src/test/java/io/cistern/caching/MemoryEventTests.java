package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.MemoryPool;
import io.cistern.OpenOptions;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.cuda.CaptureMode;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.diagnostics.SegmentMemory.State;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.graph.CudaGraph;
import io.cistern.graph.GraphCapture;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// What observers of a device memory are told.
final class MemoryEventTests extends PoolFixture {
    private final List<MemoryEvent> events = new CopyOnWriteArrayList<>();

    MemoryEventTests() {
        super(256 * MIB);
        memory.setCurrent("caching");
    }

    private <E extends MemoryEvent> List<E> told(Class<E> kind) {
        return events.stream().filter(kind::isInstance).map(kind::cast).toList();
    }

    private Registration observe() {
        return memory.listeners().onEvent(events::add);
    }

    @Test
    void aBlocksLifeIsToldWithItsSegment() {
        try (Registration _ = observe()) {
            long address = allocate(1000);
            free(address);
            assertThat(events).hasSize(3);
            assertThat(events.get(0)).isInstanceOf(MemoryEvent.SegmentAcquired.class);
            assertThat(events.get(1)).isInstanceOfSatisfying(MemoryEvent.Allocated.class, event -> {
                assertThat(event.allocator()).isEqualTo("caching");
                assertThat(event.address()).isEqualTo(address);
                assertThat(event.byteSize()).isEqualTo(1000);
                assertThat(event.stream()).isEqualTo(stream);
                assertThat(event.nanos()).isPositive();
            });
            assertThat(events.get(2)).isEqualTo(new MemoryEvent.Freed("caching", DEVICE, stream, address, 1000));
        }
        free(allocate(1000));
        assertThat(events).as("after the registration").hasSize(3);
    }

    @Test
    void anObserverOfRareEventsHearsOfNoBlocks() {
        List<MemoryEvent> rare = new CopyOnWriteArrayList<>();
        try (Registration _ = memory.listeners().onRareEvent(rare::add)) {
            free(allocate(1000));
            assertThat(rare).hasSize(1).hasOnlyElementsOfType(MemoryEvent.SegmentAcquired.class);
            try (Registration _ = observe()) {
                free(allocate(1000));
                assertThat(told(MemoryEvent.Allocated.class)).hasSize(1);
                assertThat(told(MemoryEvent.Freed.class)).hasSize(1);
            }
            assertThat(rare).hasSize(1);
            assertThatThrownBy(() -> allocate(300 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            assertThat(rare).anyMatch(MemoryEvent.OutOfMemory.class::isInstance);
        }
    }

    @Test
    void everyAllocatorIsObservedPlugInsToo() throws InterruptedException {
        DeviceAllocator plugIn = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return gpu.memory().allocate(device, byteSize);
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {
                gpu.memory().free(device, address);
            }
        };
        try (Registration _ = observe();
                Allocator mine = memory.open(OpenOptions.made("mine", plugIn))) {
            free(mine.allocate(5, DEVICE, stream));
            Thread.ofVirtual()
                    .start(() -> free(mine.allocate(6, DEVICE, stream)))
                    .join();
        }
        assertThat(told(MemoryEvent.Allocated.class))
                .extracting(MemoryEvent.Allocated::byteSize)
                .containsExactly(5L, 6L);
        assertThat(told(MemoryEvent.Freed.class))
                .extracting(MemoryEvent.Freed::allocator)
                .containsExactly("mine", "mine");
    }

    @Test
    void aFreeThatWaitsForAnotherStreamIsDeferred() {
        try (CudaStream other = CudaStream.open(memory, DEVICE);
                Registration _ = observe()) {
            long address = allocate(4 * MIB);
            gpu.copies().fillWords(DEVICE, address, 1, MIB, other.handle());
            memory.recordUse(address, other.handle());
            free(address);
            assertThat(told(MemoryEvent.FreeDeferred.class))
                    .containsExactly(new MemoryEvent.FreeDeferred("caching", DEVICE, address, 4 * MIB));
            assertThat(told(MemoryEvent.FreeCompleted.class)).isEmpty();
            assertThat(states()).containsExactly(State.WAITING);
            other.synchronize();
            free(allocate(4 * MIB));
            assertThat(told(MemoryEvent.FreeCompleted.class)).hasSize(1);
        }
    }

    private List<State> states() {
        return blocks().filter(block -> block.byteSize() == 4 * MIB)
                .map(SegmentMemory.Block::state)
                .toList();
    }

    private Stream<SegmentMemory.Block> blocks() {
        return memory.current(DEVICE).segments(DEVICE).stream().flatMap(segment -> segment.blocks().stream());
    }

    @Test
    void aBlockThatAGraphKeepsIsCompletedWithTheGraph() {
        memory.setCurrent("direct"); // its blocks are kept for graphs
        try (Registration _ = observe()) {
            CudaGraph graph;
            long address;
            try (GraphCapture capture = GraphCapture.begin(memory, DEVICE, stream, CaptureMode.GLOBAL)) {
                address = allocate(MIB);
                free(address);
                graph = capture.endAndInstantiate();
            }
            assertThat(told(MemoryEvent.Freed.class)).hasSize(1);
            assertThat(told(MemoryEvent.FreeDeferred.class)).hasSize(1);
            assertThat(told(MemoryEvent.FreeCompleted.class)).isEmpty();
            graph.close();
            for (int i = 0; i < 5000 && told(MemoryEvent.FreeCompleted.class).isEmpty(); i++) {
                gpu.devices().synchronize(DEVICE);
                memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
                Thread.onSpinWait();
            }
            assertThat(told(MemoryEvent.FreeCompleted.class))
                    .extracting(MemoryEvent.FreeCompleted::address)
                    .containsExactly(address);
            assertThat(told(MemoryEvent.Freed.class))
                    .as("the program freed it once")
                    .hasSize(1);
        }
    }

    @Test
    void whatProgramsDoToAllocatorsIsTold() {
        try (Registration _ = observe();
                MemoryPool pool = builder().tag("grads").open()) {
            String name;
            try (Scope scope = pool.enter()) {
                name = scope.allocator().toString();
                free(allocate(MIB));
            }
            memory.listeners().annotate("step 1");
            pool.trim(DEVICE, 0, TrimMode.WITHOUT_WAITING);
            memory.setCurrent("direct");
            try (CudaStream a = CudaStream.open(memory, DEVICE);
                    CudaStream b = CudaStream.open(memory, DEVICE)) {
                a.await(b);
                assertThat(told(MemoryEvent.StreamWaited.class))
                        .containsExactly(new MemoryEvent.StreamWaited(DEVICE, a.handle(), b.handle()));
            }
            assertThat(told(MemoryEvent.Allocated.class))
                    .extracting(MemoryEvent.Allocated::allocator)
                    .containsExactly(name);
            assertThat(told(MemoryEvent.ScopeEntered.class)).containsExactly(new MemoryEvent.ScopeEntered(name));
            assertThat(told(MemoryEvent.ScopeLeft.class)).containsExactly(new MemoryEvent.ScopeLeft(name));
            assertThat(told(MemoryEvent.Annotated.class)).containsExactly(new MemoryEvent.Annotated("step 1"));
            assertThat(told(MemoryEvent.Trimmed.class))
                    .satisfiesExactly(event -> assertThat(event.returnedBytes()).isPositive());
            assertThat(told(MemoryEvent.SegmentReleased.class)).isNotEmpty();
            assertThat(told(MemoryEvent.CurrentChanged.class))
                    .containsExactly(new MemoryEvent.CurrentChanged(DEVICE, "caching", "direct"));
            assertThat(told(MemoryEvent.StreamClosed.class)).hasSize(2);
        }
    }

    @Test
    void aRefusalIsToldWithTheStepsThatWereTried() {
        long library = gpu.memory().allocate(DEVICE, 20 * MIB);
        try (Registration _ = observe()) {
            assertThatThrownBy(() -> allocate(250 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
        }
        assertThat(told(MemoryEvent.OutOfMemory.class))
                .satisfiesExactly(event -> assertThat(event.report().byteSize()).isEqualTo(250 * MIB));
        assertThat(told(MemoryEvent.Reclaimed.class))
                .isNotEmpty()
                .allSatisfy(event -> assertThat(event.byteSize()).isEqualTo(250 * MIB));
        gpu.memory().free(DEVICE, library);
    }

    @Test
    void whatAnObserverDoesAndThrowsChangesNothing() {
        try (Registration _ = memory.listeners().onEvent(event -> {
                    free(allocate(512));
                    throw new IllegalStateException("an observer that fails");
                });
                Registration _ = observe()) {
            free(allocate(MIB));
        }
        assertThat(told(MemoryEvent.Allocated.class)).hasSize(1);
        assertThat(told(MemoryEvent.Freed.class)).hasSize(1);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "caching                           | true",
                "caching:stable_mapping=true       | true",
                "caching:expandable_segments=false | false",
                "caching:source=linear             | false"
            })
    void aSegmentOfPagesCanGrowAndOneThatCameWholeCannot(String spec, boolean expandable) {
        memory.setCurrent(spec);
        long small = allocate(700);
        long large = allocate(5 * MIB);
        assertThat(memory.current(DEVICE).segments(DEVICE))
                .isNotEmpty()
                .allSatisfy(segment -> assertThat(segment.expandable()).isEqualTo(expandable));
        free(small, large);
    }

    @Test
    void segmentsAreFilledByTheirBlocks() {
        long[] held = {allocate(3 * MIB), allocate(700), allocate(5 * MIB)};
        free(held[0]);
        for (SegmentMemory segment : memory.current(DEVICE).segments(DEVICE)) {
            long at = segment.address();
            for (SegmentMemory.Block block : segment.blocks()) {
                assertThat(block.address()).isEqualTo(at);
                at += block.byteSize();
            }
            assertThat(at).isEqualTo(segment.address() + segment.byteSize());
            assertThat(segment.stream()).hasValue(stream);
        }
        long bytes = memory.current(DEVICE).segments(DEVICE).stream()
                .mapToLong(SegmentMemory::byteSize)
                .sum();
        assertThat(memory.current(DEVICE).reservedBytes(DEVICE)).hasValue(bytes);
        assertThat(blocks().anyMatch(block -> block.address() == held[2] && block.state() == State.TAKEN))
                .isTrue();
        free(held[1], held[2]);
    }
}
