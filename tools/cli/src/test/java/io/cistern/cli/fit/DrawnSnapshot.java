package io.cistern.cli.fit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;

/// A snapshot as a version of PyTorch writes it, of a drawn program that allocates and frees 4 MiB places.
///
/// @param minor the version, as 7 for 2.7
final class DrawnSnapshot {
    /// What snapshots differ in besides their version.
    enum Shape {
        PLAIN,
        /// Of three devices.
        DEVICES,
        /// Segments that grow and give pages back.
        EXPANDABLE,
        /// The oldest events are lost.
        RING,
        /// Pools of graphs, and streams whose handles have their highest bit set.
        POOLS_AND_STREAMS,
        NO_REFUSAL
    }

    static final long MIB = 1L << 20;
    private static final int PLACES = 5;
    private static final int SEGMENTS = 6;
    private static final int STEPS = 300;
    private static final int RING_EVENTS = 150;
    private static final long[] STREAMS = {0, 94_000_000_000_000L, -4_294_967_296L};

    private final int minor;
    private final Shape shape;
    private final SplittableRandom random;
    private final List<Object> segments = new ArrayList<>();
    private final List<Object> traces = new ArrayList<>();
    private long micros = 1_700_000_000_000_000L;

    private record Block(long byteSize, long stream, List<Object> frames) {}

    private DrawnSnapshot(int minor, Shape shape) {
        this.minor = minor;
        this.shape = shape;
        random = new SplittableRandom(31L * minor + shape.ordinal());
    }

    /// Returns what is pickled.
    static Map<String, Object> of(int minor, Shape shape) {
        DrawnSnapshot drawn = new DrawnSnapshot(minor, shape);
        for (int device = 0; device < (shape == Shape.DEVICES ? 3 : 1); device++) {
            drawn.run(device);
        }
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("segments", drawn.segments);
        all.put("device_traces", drawn.traces);
        if (minor >= 1) {
            all.put(
                    "allocator_settings",
                    Map.of("expandable_segments", shape == Shape.EXPANDABLE, "max_split_size", -1));
        }
        if (minor >= 6) {
            all.put(
                    "external_annotations",
                    List.of(Map.of("device", 0, "time_us", drawn.micros, "name", "## step ##", "stage", "START")));
        }
        return all;
    }

    private void run(int device) {
        List<Object> trace = new ArrayList<>();
        traces.add(trace);
        Map<Long, Block> live = new TreeMap<>();
        List<Long> free = new ArrayList<>();
        for (int segment = 0; segment < SEGMENTS; segment++) {
            long address = address(device, segment);
            trace.add(event(isExpandable() ? "segment_map" : "segment_alloc", address, 20 * MIB, 0, List.of()));
            for (int place = 0; place < PLACES; place++) {
                free.add(address + place * 4 * MIB);
            }
        }
        for (int step = 0; step < STEPS; step++) {
            if (!free.isEmpty() && (live.isEmpty() || random.nextInt(20) < 11)) {
                long address = free.remove(random.nextInt(free.size()));
                long stream = shape == Shape.POOLS_AND_STREAMS ? STREAMS[random.nextInt(STREAMS.length)] : 0;
                Block block = new Block(random.nextLong(1, 4 * MIB), stream, frames(10 + random.nextInt(5)));
                live.put(address, block);
                trace.add(event("alloc", address, block.byteSize, stream, block.frames));
            } else {
                long address = List.copyOf(live.keySet()).get(random.nextInt(live.size()));
                Block block = live.remove(address);
                free.add(address);
                trace.add(event("free_requested", address, block.byteSize, block.stream, List.of()));
                trace.add(event("free_completed", address, block.byteSize, block.stream, List.of()));
            }
            if (step == STEPS / 2 && shape != Shape.NO_REFUSAL) {
                trace.add(event("oom", 3 * MIB, 64 * MIB, 0, frames(90)));
            }
        }
        if (isExpandable()) { // A page was there for a while.
            trace.add(event("segment_map", address(device, SEGMENTS), 20 * MIB, 0, List.of()));
            trace.add(event("segment_unmap", address(device, SEGMENTS), 20 * MIB, 0, List.of()));
        }
        trace.add(event("snapshot", 0, 0, 0, List.of()));
        if (minor >= 10) {
            trace.add(event("workspace_snapshot", 0, 0, 0, List.of()));
        }
        if (shape == Shape.RING) {
            trace.subList(0, trace.size() - RING_EVENTS).clear();
        }
        for (int segment = 0; segment < SEGMENTS; segment++) {
            segments.add(segment(device, address(device, segment), live));
        }
    }

    private boolean isExpandable() {
        return shape == Shape.EXPANDABLE;
    }

    private static long address(int device, int segment) {
        return 0x7f00_0000_0000L + ((long) device << 36) + segment * 32 * MIB;
    }

    private Object pool() {
        return shape == Shape.POOLS_AND_STREAMS ? new Object[] {0, 7} : new Object[] {0, 0};
    }

    private List<Object> frames(int line) {
        Map<String, Object> frame =
                new LinkedHashMap<>(Map.of("name", "step", "filename", "/home/me/train.py", "line", line));
        if (minor >= 11) {
            frame.put("fx_node_op", "call_function");
            frame.put("fx_original_trace", "File \"x.py\", line 3");
        }
        return List.of(frame);
    }

    private Map<String, Object> event(String action, long address, long byteSize, long stream, List<Object> frames) {
        micros += random.nextInt(1000);
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("action", action);
        event.put(action.equals("oom") ? "device_free" : "addr", address);
        event.put("size", byteSize);
        event.put("stream", stream);
        if (!frames.isEmpty() || minor >= 1) {
            event.put("frames", frames);
        }
        if (minor >= 2) {
            event.put("time_us", micros - random.nextInt(3)); // Clocks of two threads differ.
        }
        if (minor >= 7) {
            event.put("compile_context", "N/A");
            event.put("user_metadata", "step 7");
            event.put("category", "activation");
        }
        if (minor >= 9) {
            event.put("pool_id", pool());
        }
        return event;
    }

    private Map<String, Object> segment(int device, long address, Map<Long, Block> live) {
        List<Object> blocks = new ArrayList<>();
        for (int place = 0; place < PLACES; place++) {
            blocks.add(block(address + place * 4 * MIB, live.get(address + place * 4 * MIB)));
        }
        Map<String, Object> segment = new LinkedHashMap<>(
                Map.of("device", device, "address", address, "total_size", 20 * MIB, "segment_type", "large"));
        segment.put("stream", 0);
        segment.put("blocks", blocks);
        if (minor >= 1) {
            segment.put("segment_pool_id", pool());
            segment.put("is_expandable", isExpandable());
        }
        return segment;
    }

    private Map<String, Object> block(long address, Block taken) {
        Map<String, Object> block = new LinkedHashMap<>();
        block.put("size", 4 * MIB);
        block.put("state", taken == null ? "inactive" : "active_allocated");
        if (minor >= 1) {
            block.put("address", address);
            block.put("requested_size", taken == null ? 0 : taken.byteSize);
            block.put("frames", taken == null ? List.of() : taken.frames);
        } else if (taken != null) {
            block.put("history", List.of(Map.of("addr", address, "real_size", taken.byteSize, "frames", taken.frames)));
        }
        return block;
    }
}
