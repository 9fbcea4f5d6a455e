package io.cistern.observability.internal;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.observability.HistoryEntry;
import io.cistern.observability.MemorySnapshot;
import io.cistern.observability.MemorySnapshot.Block;
import io.cistern.observability.MemorySnapshot.Segment;
import io.cistern.observability.MemorySnapshot.State;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import net.razorvine.pickle.Pickler;

/// Writes a snapshot in the format of a pickled `torch.cuda.memory._snapshot` of PyTorch.
///
/// | PyTorch's | ours |
/// |---|---|
/// | `active_allocated`, `active_pending_free`, `inactive` | live, waiting, idle or in a thread's cache |
/// | `free_requested` and `free_completed` together | freed; a deferred free has the second when it completes |
/// | `segment_alloc`, `segment_free` | memory that an allocator obtained and released |
/// | `segment_pool_id` `(0, n)` | the n-th allocator or pool; `(0, 0)` is the first |
/// | `is_expandable` | memory that can grow inside a larger range of addresses |
/// | `external_annotations` | the program's annotations |
///
/// Trims, swaps, scopes and waits have no counterpart there.
///
/// **Threads.** Not thread-safe.
public final class TorchPickle {
    private static final String NO_CONTEXT = "N/A";
    private static final long SMALL_BYTES = 1 << 20;

    private final MemorySnapshot snapshot;

    /// The number of each allocator, by name.
    private final Map<String, Integer> poolNumbers = new HashMap<>();

    /// One list for each site and one map for each frame, since many blocks share them. The pickle contains
    /// each object once.
    private final Map<List<StackTraceElement>, List<Map<String, Object>>> sites = new HashMap<>();

    private final Map<StackTraceElement, Map<String, Object>> frames = new HashMap<>();

    private final List<List<Map<String, Object>>> traces = new ArrayList<>();
    private final List<Map<String, Object>> annotations = new ArrayList<>();

    /// Addresses of blocks whose free was deferred and has not completed yet.
    private final Set<Long> deferred = new HashSet<>();

    private TorchPickle(MemorySnapshot snapshot) {
        this.snapshot = snapshot;
        for (int i = 0; i < snapshot.allocators().size(); i++) {
            poolNumbers.putIfAbsent(snapshot.allocators().get(i).name(), poolNumbers.size());
        }
        for (int device = 0; device < deviceCount(snapshot); device++) {
            traces.add(new ArrayList<>());
        }
    }

    /// Returns how many traces to write: PyTorch finds a device's trace by its ordinal.
    private static int deviceCount(MemorySnapshot snapshot) {
        IntStream used = snapshot.devices().stream().mapToInt(MemorySnapshot.Device::ordinal);
        IntStream recorded = snapshot.history().stream()
                .flatMap(history -> history.entries().stream())
                .mapToInt(entry -> entry.event().device());
        return IntStream.concat(used, recorded).max().orElse(-1) + 1;
    }

    /// Writes a snapshot.
    ///
    /// @param out the stream to write to; it stays open
    public static void write(MemorySnapshot snapshot, OutputStream out) throws IOException {
        // Shared objects are found by identity: comparing values would cost more than writing them.
        new Pickler(true, false).dump(new TorchPickle(snapshot).all(), out);
    }

    private Map<String, Object> all() {
        snapshot.history().ifPresent(history -> {
            long startMicros = micros(history.startedAt());
            List<HistoryEntry> entries = history.entries();
            int[] next = nextOfThread(entries);
            for (int i = 0; i < entries.size(); i++) {
                long micros = startMicros + (entries.get(i).nanos() - history.startNanos()) / 1000;
                addTrace(entries, next, i, micros);
            }
        });
        return Map.of(
                "segments",
                snapshot.segments().stream().map(this::segment).toList(),
                "device_traces",
                traces,
                "allocator_settings",
                settings(),
                "external_annotations",
                annotations);
    }

    /// Returns the settings, and that Cistern recorded the snapshot: a reader would otherwise assume PyTorch.
    private Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>(snapshot.settings());
        settings.put("recorded_by", "Cistern");
        return settings;
    }

    private static long micros(Instant moment) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, moment);
    }

    private Map<String, Object> segment(Segment segment) {
        long live = bytes(segment, State.LIVE);
        Map<String, Object> fields = new HashMap<>();
        fields.put("device", segment.device());
        fields.put("address", segment.address());
        fields.put("total_size", segment.byteSize());
        fields.put("allocated_size", live);
        fields.put("active_size", live + bytes(segment, State.WAITING));
        fields.put(
                "requested_size",
                segment.blocks().stream().mapToLong(Block::requestedBytes).sum());
        fields.put("stream", segment.stream().orElse(0));
        fields.put("segment_type", segment.byteSize() <= SMALL_BYTES ? "small" : "large");
        fields.put("segment_pool_id", poolId(segment.allocator()));
        fields.put("is_expandable", segment.expandable());
        fields.put("frames", List.of());
        fields.put("blocks", segment.blocks().stream().map(this::block).toList());
        return fields;
    }

    private static long bytes(Segment segment, State state) {
        return segment.blocks().stream()
                .filter(block -> block.state() == state)
                .mapToLong(Block::byteSize)
                .sum();
    }

    private Object poolId(String allocator) {
        return new Object[] {0, poolNumbers.getOrDefault(allocator, 0)};
    }

    private Map<String, Object> block(Block block) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("address", block.address());
        fields.put("size", block.byteSize());
        fields.put("requested_size", block.requestedBytes());
        fields.put(
                "state",
                switch (block.state()) {
                    case LIVE -> "active_allocated";
                    case WAITING -> "active_pending_free";
                    case CACHED, IDLE -> "inactive";
                });
        fields.put("frames", frames(block.site()));
        return fields;
    }

    private List<Map<String, Object>> frames(List<StackTraceElement> site) {
        return sites.computeIfAbsent(
                site,
                _ -> site.stream()
                        .map(frame -> frames.computeIfAbsent(frame, TorchPickle::frame))
                        .toList());
    }

    private static Map<String, Object> frame(StackTraceElement frame) {
        return Map.of(
                "filename",
                frame.getFileName() == null ? "??" : frame.getFileName(),
                "line",
                Math.max(0, frame.getLineNumber()),
                "name",
                frame.getClassName() + "." + frame.getMethodName());
    }

    private void addTrace(List<HistoryEntry> entries, int[] next, int at, long micros) {
        HistoryEntry entry = entries.get(at);
        switch (entry.event()) {
            case MemoryEvent.Allocated e ->
                add(entry, "alloc", micros, e.address(), e.byteSize(), e.stream(), e.allocator());
            case MemoryEvent.Freed e -> {
                add(entry, "free_requested", micros, e.address(), e.byteSize(), e.stream(), e.allocator());
                if (!isDeferred(entries, next[at], e)) {
                    add(entry, "free_completed", micros, e.address(), e.byteSize(), e.stream(), e.allocator());
                }
            }
            case MemoryEvent.FreeCompleted e -> {
                if (deferred.remove(e.address())) {
                    add(entry, "free_completed", micros, e.address(), e.byteSize(), 0, e.allocator());
                }
            }
            case MemoryEvent.SegmentAcquired e ->
                add(entry, "segment_alloc", micros, e.address(), e.byteSize(), 0, e.allocator());
            case MemoryEvent.SegmentReleased e ->
                add(entry, "segment_free", micros, e.address(), e.byteSize(), 0, e.allocator());
            case MemoryEvent.OutOfMemory e ->
                add(
                        entry,
                        "oom",
                        micros,
                        e.report().freeBytes().orElse(0),
                        e.report().byteSize(),
                        e.report().stream(),
                        "");
            case MemoryEvent.Annotated e -> annotate(e.text(), micros);
            default -> {} // PyTorch has no such event.
        }
    }

    /// Returns, for each entry, the place of the next one of the same thread; the number of entries if there
    /// is none.
    private static int[] nextOfThread(List<HistoryEntry> entries) {
        int[] next = new int[entries.size()];
        Map<String, Integer> first = new HashMap<>();
        for (int at = entries.size() - 1; at >= 0; at--) {
            Integer later = first.put(entries.get(at).thread(), at);
            next[at] = later == null ? entries.size() : later;
        }
        return next;
    }

    /// Returns whether the next event of the freeing thread defers this free: a thread
    /// reports both in succession.
    private boolean isDeferred(List<HistoryEntry> entries, int next, MemoryEvent.Freed freed) {
        return next < entries.size()
                && entries.get(next).event() instanceof MemoryEvent.FreeDeferred later
                && later.address() == freed.address()
                && deferred.add(freed.address());
    }

    private void add(
            HistoryEntry entry,
            String action,
            long micros,
            long address,
            long byteSize,
            long stream,
            String allocator) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("action", action);
        fields.put("addr", address);
        fields.put("size", byteSize);
        fields.put("stream", stream);
        fields.put("time_us", micros);
        fields.put("pool_id", poolId(allocator));
        fields.put("frames", frames(entry.site()));
        fields.put("compile_context", NO_CONTEXT);
        fields.put("user_metadata", entry.text().isEmpty() ? entry.thread() : entry.text());
        traces.get(entry.event().device()).add(fields);
    }

    private void annotate(String text, long micros) {
        for (int device = 0; device < traces.size(); device++) {
            annotations.add(Map.of("stage", "START", "name", text, "device", device, "time_us", micros));
        }
    }
}
