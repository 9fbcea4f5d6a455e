package io.cistern.cli.allocators;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.HistoryOptions;
import io.cistern.observability.MemoryHistory;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.TrimMode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Observers hear of events in an order in which each follows from those before it, whichever thread caused them.
final class EventOrderTests {
    private static final int THREADS = 4;
    private static final int STEPS = 150;

    private final SimulatedGpu gpu = EveryAllocator.gpu();
    private final DeviceMemory memory = EveryAllocator.memory(gpu);
    private final List<MemoryEvent> heard = Collections.synchronizedList(new ArrayList<>());

    static List<String> specs() {
        return EveryAllocator.specs().stream()
                .filter(spec -> !spec.startsWith("confined")) // to one thread
                .toList();
    }

    @AfterEach
    void close() {
        memory.close();
        gpu.close();
    }

    @ParameterizedTest
    @MethodSource("specs")
    void anEventFollowsFromThoseHeardBefore(String spec) throws InterruptedException {
        memory.setCurrent(spec);
        memory.listeners().onEvent(heard::add);
        try (CudaStream stream = CudaStream.open(memory, 0)) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Thread.Builder builder = i % 2 == 0 ? Thread.ofPlatform() : Thread.ofVirtual();
                threads.add(builder.start(() -> work(stream.handle())));
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertThat(outOfOrder(List.copyOf(heard))).isEmpty();
    }

    /// The history sorts by time.
    @ParameterizedTest
    @MethodSource("specs")
    void theHistoryHasThatOrder(String spec) {
        memory.setCurrent(spec);
        try (MemoryHistory history = MemoryHistory.of(memory);
                CudaStream stream = CudaStream.open(memory, 0)) {
            history.start(HistoryOptions.withoutStacks());
            work(stream.handle());
            assertThat(outOfOrder(
                            history.entries().stream().map(HistoryEntry::event).toList()))
                    .isEmpty();
        }
    }

    private void work(long stream) {
        List<Long> live = new ArrayList<>();
        for (int step = 0; step < STEPS; step++) {
            live.add(memory.allocate(step % 5 == 0 ? 4L << 20 : 10_000, 0, stream));
            if (live.size() > 8) {
                live.forEach(block -> memory.free(block, stream));
                live.clear();
                memory.trim(0, 0, TrimMode.SYNCHRONIZE);
            }
        }
        live.forEach(block -> memory.free(block, stream));
    }

    private static List<String> outOfOrder(List<MemoryEvent> events) {
        boolean segmentsAreTold = events.stream().anyMatch(MemoryEvent.SegmentAcquired.class::isInstance);
        TreeMap<Long, Long> usable = new TreeMap<>();
        TreeMap<Long, Long> live = new TreeMap<>();
        List<String> wrong = new ArrayList<>();
        for (MemoryEvent event : events) {
            boolean follows = switch (event) {
                case MemoryEvent.SegmentAcquired segment -> {
                    usable.put(segment.address(), segment.byteSize());
                    yield true;
                }
                case MemoryEvent.PageMoved page -> {
                    usable.put(page.address(), page.byteSize());
                    yield true;
                }
                case MemoryEvent.SegmentReleased segment ->
                    live.subMap(segment.address(), segment.address() + segment.byteSize())
                            .isEmpty();
                case MemoryEvent.Allocated block ->
                    live.put(block.address(), block.byteSize()) == null
                            && (!segmentsAreTold || contains(usable, block.address()));
                case MemoryEvent.Freed block -> live.remove(block.address()) != null;
                default -> true;
            };
            if (!follows) {
                wrong.add(event.toString());
            }
        }
        return wrong;
    }

    /// Whether a range of memory lies there, or lay: ranges that were released may lie inside of later ones.
    private static boolean contains(NavigableMap<Long, Long> ranges, long address) {
        return ranges.headMap(address, true).entrySet().stream()
                .anyMatch(range -> address < range.getKey() + range.getValue());
    }
}
