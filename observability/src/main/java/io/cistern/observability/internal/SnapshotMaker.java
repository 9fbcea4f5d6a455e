package io.cistern.observability.internal;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.names.Known;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.MemoryHistory;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.MemorySnapshot.AllocatorFigures;
import io.cistern.observability.MemorySnapshot.Block;
import io.cistern.observability.MemorySnapshot.Device;
import io.cistern.observability.MemorySnapshot.History;
import io.cistern.observability.MemorySnapshot.Segment;
import io.cistern.observability.MemorySnapshot.State;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Assembles a snapshot from the segments that allocators report, the framework's records of live blocks,
/// and the history.
///
/// 1. Collect the live blocks of all allocators, and those that graphs keep, by address.
/// 2. Collect the segments that allocators report. Adaptors also report those of the allocator below, so
///    duplicates are dropped.
/// 3. In a segment, a block that is handed out is live if a live block lies in it, and waits if a graph keeps
///    it; else a thread's cache holds it.
/// 4. Add each of these blocks outside all segments as a segment of its own.
///
/// **Threads.** Not thread-safe.
public final class SnapshotMaker {
    private final DeviceMemory memory;
    private final Optional<History> history;

    /// The moment of the snapshot on both clocks, read before the work begins.
    private final Instant takenAt = Instant.now();

    private final long now = System.nanoTime();

    /// The allocation event of each block in the history, by address.
    private final Map<Long, HistoryEntry> births = new HashMap<>();

    /// The scope in which each such block was allocated, by address; absent if there was none.
    private final Map<Long, String> birthScopes = new HashMap<>();

    /// The scopes that each thread is in, by its name.
    private final Map<String, ScopesOfThread<String>> scopes = new HashMap<>();

    /// The live blocks of one device, by address; removed once a segment contains them.
    private final TreeMap<Long, LiveBlock> live = new TreeMap<>();

    /// The same for blocks that graphs keep.
    private final TreeMap<Long, KeptBlock> kept = new TreeMap<>();

    public SnapshotMaker(DeviceMemory memory) {
        this.memory = memory;
        this.history = recorded(MemoryHistory.of(memory));
        history.ifPresent(known -> known.entries().forEach(this::noteBirth));
    }

    private static Optional<History> recorded(MemoryHistory history) {
        return history.options()
                .map(options -> new History(
                        history.startedAt(), history.startNanos(), options, history.lost(), history.entries()));
    }

    private void noteBirth(HistoryEntry entry) {
        ScopesOfThread<String> inside = scopes.computeIfAbsent(entry.thread(), _ -> new ScopesOfThread<>(_ -> {}));
        switch (entry.event()) {
            case MemoryEvent.ScopeEntered scope -> inside.enter(scope.allocator(), scope.allocator());
            case MemoryEvent.ScopeLeft scope -> inside.leave(scope.allocator());
            case MemoryEvent.Allocated block -> {
                births.put(block.address(), entry);
                birthScopes.compute(block.address(), (_, _) -> inside.innermost());
            }
            case MemoryEvent.Freed block -> births.remove(block.address());
            default -> {}
        }
    }

    public MemorySnapshot make(String reason, Optional<OutOfMemoryReport> outOfMemory) {
        List<Device> devices = new ArrayList<>();
        List<Segment> segments = new ArrayList<>();
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            int ordinal = device;
            Known.orElse(() -> device(ordinal), Optional.<Device>empty()).ifPresent(devices::add);
            addSegments(device, segments);
        }
        return new MemorySnapshot(
                takenAt,
                reason,
                settings(),
                memory.driver().description(),
                devices,
                figures(),
                segments,
                history,
                outOfMemory);
    }

    private Optional<Device> device(int device) {
        CudaDriver driver = memory.driver();
        if (!driver.devices().isUsed(device)) { // a query would take memory there
            return Optional.empty();
        }
        var info = driver.memory().info(device);
        return Optional.of(new Device(device, driver.devices().name(device), info.totalBytes(), info.freeBytes()));
    }

    private static Map<String, String> settings() {
        Map<String, String> settings = new TreeMap<>();
        System.getenv().forEach((name, value) -> {
            if (name.startsWith("CISTERN_")) {
                settings.put(name, value);
            }
        });
        for (String name : System.getProperties().stringPropertyNames()) {
            if (name.startsWith("cistern.")) {
                settings.put(name, System.getProperty(name, ""));
            }
        }
        return settings;
    }

    private List<AllocatorFigures> figures() {
        List<AllocatorFigures> all = new ArrayList<>();
        for (Allocator allocator : memory.allocators()) {
            Optional<String> pool = allocator instanceof MemoryPool its ? Optional.of(its.tag()) : Optional.empty();
            for (int device = 0; device < memory.environment().deviceCount(); device++) {
                Map<String, Long> figures = allocator.memoryStatistics(device);
                if (figures.values().stream().anyMatch(figure -> figure != 0)) {
                    boolean current = memory.currents().isCurrent(device, allocator);
                    all.add(new AllocatorFigures(allocator.toString(), pool, device, current, figures));
                }
            }
        }
        return all;
    }

    private void addSegments(int device, List<Segment> segments) {
        live.clear();
        memory.liveBlocks().stream()
                .filter(block -> block.device() == device)
                .forEach(block -> live.put(block.address(), block));
        kept.clear();
        for (KeptBlock block : GraphMemory.kept(memory)) {
            if (block.device() == device && !live.containsKey(block.address())) { // freed just now
                kept.put(block.address(), block);
            }
        }
        List<Segment> found = new ArrayList<>();
        Set<Long> told = new HashSet<>();
        for (Allocator allocator : memory.allocators()) {
            for (SegmentMemory segment : allocator.segments(device)) {
                if (told.add(segment.address())) {
                    found.add(segment(allocator.toString(), device, segment));
                }
            }
        }
        for (LiveBlock each : live.values()) {
            found.add(alone(each.allocator(), device, live(each.address(), each.byteSize(), each)));
        }
        for (KeptBlock each : kept.values()) {
            found.add(alone(each.allocator(), device, kept(each.address(), each.byteSize(), each)));
        }
        found.sort(Comparator.comparingLong(Segment::address));
        segments.addAll(found);
    }

    private Segment segment(String allocator, int device, SegmentMemory segment) {
        return new Segment(
                allocator,
                device,
                segment.address(),
                segment.byteSize(),
                segment.stream(),
                segment.expandable(),
                true,
                segment.blocks().stream().map(this::block).toList());
    }

    private Block block(SegmentMemory.Block part) {
        return switch (part.state()) {
            case TAKEN -> taken(part);
            case WAITING -> notLive(part, State.WAITING);
            case IDLE -> notLive(part, State.IDLE);
        };
    }

    private Block taken(SegmentMemory.Block part) {
        LiveBlock alive = takenFrom(live, part);
        if (alive != null) {
            return live(part.address(), part.byteSize(), alive);
        }
        KeptBlock freed = takenFrom(kept, part);
        return freed != null ? kept(part.address(), part.byteSize(), freed) : notLive(part, State.CACHED);
    }

    /// Removes and returns the first block that begins in a part of a segment; null if none does.
    private static <B> @Nullable B takenFrom(NavigableMap<Long, B> blocks, SegmentMemory.Block part) {
        Map.Entry<Long, B> first = blocks.ceilingEntry(part.address());
        if (first == null || first.getKey() >= part.address() + part.byteSize()) {
            return null;
        }
        blocks.remove(first.getKey());
        return first.getValue();
    }

    private static Block notLive(SegmentMemory.Block part, State state) {
        return free(part.address(), part.byteSize(), state, Optional.empty());
    }

    private static Block kept(long address, long byteSize, KeptBlock block) {
        return free(address, byteSize, State.WAITING, Optional.of(block.graph()));
    }

    private static Block free(long address, long byteSize, State state, Optional<String> graph) {
        return new Block(
                address,
                byteSize,
                0,
                state,
                OptionalLong.empty(),
                Optional.empty(),
                Optional.empty(),
                OptionalLong.empty(),
                List.of(),
                graph);
    }

    private static Segment alone(String allocator, int device, Block only) {
        return new Segment(
                allocator, device, only.address(), only.byteSize(), OptionalLong.empty(), false, false, List.of(only));
    }

    /// Describes a block from the history if it contains the block, else from the leak level's records.
    private Block live(long address, long byteSize, LiveBlock block) {
        HistoryEntry birth = births.get(block.address());
        if (birth != null && birth.event() instanceof MemoryEvent.Allocated allocated) {
            return new Block(
                    address,
                    byteSize,
                    block.byteSize(),
                    State.LIVE,
                    OptionalLong.of(allocated.stream()),
                    Optional.of(birth.thread()),
                    Optional.ofNullable(birthScopes.get(block.address())),
                    OptionalLong.of(now - birth.nanos()),
                    birth.site().isEmpty() ? block.site() : birth.site(),
                    Optional.empty());
        }
        Optional<Duration> age = block.age();
        return new Block(
                address,
                byteSize,
                block.byteSize(),
                State.LIVE,
                block.stream(),
                block.thread(),
                Optional.empty(),
                age.isPresent() ? OptionalLong.of(age.get().toNanos()) : OptionalLong.empty(),
                block.site(),
                Optional.empty());
    }
}
