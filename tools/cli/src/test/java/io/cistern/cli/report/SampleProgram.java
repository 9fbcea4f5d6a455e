package io.cistern.cli.report;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A made-up program over a made-up allocator: best fit in segments that each serve one stream. It records
/// what it does as a program with a history does, and writes snapshots.
final class SampleProgram {
    static final long MIB = 1 << 20;

    private static final long ROUNDING = 512;
    private static final String ALLOCATOR = "caching";
    private static final Instant STARTED = Instant.parse("2026-11-26T11:59:00Z");

    private final List<Segment> segments = new ArrayList<>();
    private final List<Segment> untold = new ArrayList<>();
    private final Map<Long, Block> live = new TreeMap<>();
    private final List<Map<String, Object>> events = new ArrayList<>();
    private final Map<String, Integer> frames = new LinkedHashMap<>();
    private final long totalBytes;
    private final long growthBytes;
    private long nextSegment = 0x7f00_0000_0000L;
    private long nanos;
    private String thread = "main";
    private String allocator = ALLOCATOR;
    private @Nullable String pool;
    private int lost;
    private @Nullable Map<String, Object> outOfMemory;

    /// @param growthBytes length of a new segment, where the request is not larger
    SampleProgram(long totalBytes, long growthBytes) {
        this.totalBytes = totalBytes;
        this.growthBytes = growthBytes;
    }

    /// Lets time pass.
    SampleProgram after(long passedNanos) {
        nanos += passedNanos;
        return this;
    }

    /// Says which thread does what comes next.
    SampleProgram on(String name) {
        thread = name;
        return this;
    }

    /// Says which pool serves what comes next.
    SampleProgram in(String tag) {
        pool = tag;
        allocator = "pool 1 '" + tag + "' (caching)";
        return this;
    }

    /// Says that the allocator itself serves what comes next.
    SampleProgram outsidePools() {
        pool = null;
        allocator = ALLOCATOR;
        return this;
    }

    /// Forgets the events so far, as a full ring does.
    SampleProgram loseEvents() {
        lost += events.size();
        events.clear();
        return this;
    }

    /// @param stack innermost first
    /// @return the block's address
    long allocate(long byteSize, long stream, String... stack) {
        long rounded = (byteSize + ROUNDING - 1) / ROUNDING * ROUNDING;
        Block free = idle(rounded, stream);
        Block block = free.segment.cut(free, rounded);
        block.take(byteSize, thread, nanos, indexes(stack));
        live.put(block.address, block);
        Map<String, Object> event = event("allocated", block.address, byteSize);
        event.put("stream", stream);
        event.put("tookNanos", 400L);
        event.put("frames", block.frames);
        for (Segment segment : untold) { // As an allocator does: once the allocation that needed it is done.
            event("segmentAcquired", segment.address, segment.byteSize).put("nanos", nanos + 10_000);
        }
        untold.clear();
        return block.address;
    }

    void free(long address) {
        Block block = freed(address);
        block.segment.merge(block);
    }

    /// Frees a block that another stream still uses.
    void freeDeferred(long address) {
        Block block = freed(address);
        block.state = "waiting";
        event("freeDeferred", address, block.byteSize);
    }

    /// Frees a block that stays in its thread's cache.
    void freeToCache(long address) {
        freed(address).state = "cached";
    }

    private Block freed(long address) {
        Block block = live.remove(address);
        if (block == null) {
            throw new IllegalArgumentException("no live block at " + address);
        }
        event("freed", address, block.requestedBytes).put("stream", block.segment.stream);
        block.requestedBytes = 0;
        return block;
    }

    SampleProgram annotate(String text) {
        event("annotated").put("text", text);
        return this;
    }

    SampleProgram streamWaits(long stream, long awaited) {
        Map<String, Object> event = event("streamWaited");
        event.put("device", 0);
        event.put("stream", stream);
        event.put("awaited", awaited);
        return this;
    }

    /// A request that nothing can serve, and what was tried for it.
    SampleProgram refuse(long byteSize, long stream) {
        List<Map<String, Object>> steps = new ArrayList<>();
        steps.add(Map.of("step", "passed fences", "byteSize", 12 * MIB, "nanos", 41_000L));
        steps.add(Map.of("step", "callbacks", "byteSize", 0L, "nanos", 2_300_000L));
        steps.add(Map.of("step", "trim", "byteSize", 96 * MIB, "nanos", 8_700_000L));
        steps.add(Map.of("step", "frees", "byteSize", 0L, "nanos", 100_000_000L));
        for (Map<String, Object> step : steps) {
            nanos += (long) step.get("nanos");
            Map<String, Object> event = event("reclaimed");
            event.put("device", 0);
            event.put("byteSize", byteSize);
            event.put("step", step.get("step"));
            event.put("gaveBytes", step.get("byteSize"));
            event.put("tookNanos", step.get("nanos"));
        }
        Map<String, Object> event = event("outOfMemory");
        event.put("device", 0);
        event.put("byteSize", byteSize);
        event.put("stream", stream);
        long freeBytes = totalBytes - reservedBytes() - 1500 * MIB;
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("device", 0);
        report.put("byteSize", byteSize);
        report.put("stream", stream);
        report.put("freeBytes", freeBytes);
        report.put("totalBytes", totalBytes);
        report.put("text", byteSize + " bytes were requested on device 0\ndevice: " + freeBytes + " bytes free");
        report.put("steps", steps);
        report.put("advice", List.of("process 4242 holds 1.46 GiB of the device: end it or give it another device"));
        Map<String, Object> asked = new LinkedHashMap<>();
        asked.put("name", ALLOCATOR);
        asked.put("pool", "");
        asked.put("reservedBytes", reservedBytes());
        asked.put("requestedBytes", requestedBytes());
        asked.put("liveBlocks", live.size());
        asked.put("largestFreeBytes", largestIdle());
        asked.put(
                "streams",
                List.of(Map.of("stream", stream, "liveBytes", requestedBytes(), "largestFreeBytes", largestIdle())));
        report.put("allocators", List.of(asked));
        report.put("processes", List.of(Map.of("processId", 4242, "byteSize", 1500 * MIB)));
        outOfMemory = report;
        return this;
    }

    /// How many events there are.
    int eventCount() {
        return events.size();
    }

    /// Writes a snapshot of this moment.
    Path write(Path file, String reason) throws IOException {
        Map<String, Object> snapshot = new LinkedHashMap<>();
        snapshot.put("format", "cistern-snapshot");
        snapshot.put("version", 1);
        snapshot.put("takenAt", STARTED.plusNanos(nanos).toString());
        snapshot.put("reason", reason);
        snapshot.put("runtime", Map.of("java", "25", "processId", 123, "driver", "simulated, CUDA 13"));
        snapshot.put("settings", Map.of("cistern.allocator", ALLOCATOR));
        snapshot.put(
                "devices",
                List.of(Map.of(
                        "device",
                        0,
                        "name",
                        "Simulated GPU",
                        "totalBytes",
                        totalBytes,
                        "freeBytes",
                        totalBytes - reservedBytes())));
        Map<String, List<Segment>> byAllocator = segments.stream()
                .collect(Collectors.groupingBy(each -> each.allocator, LinkedHashMap::new, Collectors.toList()));
        snapshot.put(
                "allocators",
                byAllocator.values().stream().map(SampleProgram::figures).toList());
        snapshot.put("segments", segments.stream().map(this::described).toList());
        snapshot.put("frames", List.copyOf(frames.keySet()));
        Map<String, Object> history = new LinkedHashMap<>();
        history.put("startedAt", STARTED.toString());
        history.put("capacity", 131_072);
        history.put("lost", lost);
        history.put("stacks", true);
        history.put("events", events);
        snapshot.put("history", history);
        snapshot.put("outOfMemory", outOfMemory);
        return Files.writeString(
                file, JSON.std.with(JSON.Feature.WRITE_NULL_PROPERTIES).asString(snapshot), StandardCharsets.UTF_8);
    }

    private static Map<String, Object> figures(List<Segment> segments) {
        List<Block> blocks =
                segments.stream().flatMap(each -> each.blocks.values().stream()).toList();
        Map<String, Object> allocator = new LinkedHashMap<>();
        allocator.put("name", segments.getFirst().allocator);
        allocator.put("pool", segments.getFirst().pool);
        allocator.put("device", 0);
        allocator.put("current", segments.getFirst().pool == null);
        allocator.put(
                "figures",
                Map.of(
                        "requested_bytes.all.current",
                        blocks.stream().mapToLong(each -> each.requestedBytes).sum(),
                        "reserved_bytes.all.current",
                        segments.stream().mapToLong(each -> each.byteSize).sum(),
                        "largest_free_block",
                        blocks.stream()
                                .filter(each -> each.state.equals("idle"))
                                .mapToLong(each -> each.byteSize)
                                .max()
                                .orElse(0),
                        "num_ooms",
                        0L,
                        "num_alloc_retries",
                        0L));
        return allocator;
    }

    private Map<String, Object> described(Segment segment) {
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("allocator", segment.allocator);
        described.put("device", 0);
        described.put("address", segment.address);
        described.put("byteSize", segment.byteSize);
        described.put("stream", segment.stream);
        described.put("expandable", true);
        described.put("reported", true);
        described.put(
                "blocks",
                segment.blocks.values().stream()
                        .map(block -> block.described(nanos))
                        .toList());
        return described;
    }

    private Block idle(long byteSize, long stream) {
        return segments.stream()
                .filter(segment -> segment.stream == stream && segment.allocator.equals(allocator))
                .flatMap(segment -> segment.blocks.values().stream())
                .filter(block -> block.state.equals("idle") && block.byteSize >= byteSize)
                .min(Comparator.comparingLong(block -> block.byteSize))
                .orElseGet(() -> grow(byteSize, stream));
    }

    private Block grow(long byteSize, long stream) {
        long length = Math.max(growthBytes, (byteSize + 2 * MIB - 1) / (2 * MIB) * (2 * MIB));
        Segment segment = new Segment(allocator, pool, nextSegment, length, stream);
        nextSegment += length + 64 * MIB;
        segments.add(segment);
        untold.add(segment);
        return segment.blocks.firstEntry().getValue();
    }

    private long reservedBytes() {
        return segments.stream().mapToLong(segment -> segment.byteSize).sum();
    }

    private long requestedBytes() {
        return live.values().stream().mapToLong(block -> block.requestedBytes).sum();
    }

    private long largestIdle() {
        return segments.stream()
                .flatMap(segment -> segment.blocks.values().stream())
                .filter(block -> block.state.equals("idle"))
                .mapToLong(block -> block.byteSize)
                .max()
                .orElse(0);
    }

    private List<Integer> indexes(String... stack) {
        List<Integer> indexes = new ArrayList<>();
        for (String frame : stack) {
            Integer index = frames.putIfAbsent(frame, frames.size());
            indexes.add(index == null ? frames.size() - 1 : index);
        }
        return indexes;
    }

    private Map<String, Object> event(String kind, long address, long byteSize) {
        Map<String, Object> event = event(kind);
        event.put("device", 0);
        event.put("allocator", allocator);
        event.put("address", address);
        event.put("byteSize", byteSize);
        return event;
    }

    private Map<String, Object> event(String kind) {
        Map<String, Object> event = new LinkedHashMap<>();
        event.put("event", kind);
        event.put("nanos", nanos);
        event.put("thread", thread);
        events.add(event);
        return event;
    }

    /// A range of memory for one stream.
    private static final class Segment {
        final String allocator;
        final @Nullable String pool;
        final long address;
        final long byteSize;
        final long stream;
        final TreeMap<Long, Block> blocks = new TreeMap<>();

        Segment(String allocator, @Nullable String pool, long address, long byteSize, long stream) {
            this.allocator = allocator;
            this.pool = pool;
            this.address = address;
            this.byteSize = byteSize;
            this.stream = stream;
            blocks.put(address, new Block(this, address, byteSize));
        }

        Block cut(Block free, long length) {
            if (free.byteSize > length) {
                Block rest = new Block(this, free.address + length, free.byteSize - length);
                blocks.put(rest.address, rest);
                free.byteSize = length;
            }
            return free;
        }

        void merge(Block freed) {
            Block block = freed;
            block.state = "idle";
            Map.Entry<Long, Block> after = blocks.higherEntry(block.address);
            if (after != null && after.getValue().state.equals("idle")) {
                blocks.remove(after.getKey());
                block.byteSize += after.getValue().byteSize;
            }
            Map.Entry<Long, Block> before = blocks.lowerEntry(block.address);
            if (before != null && before.getValue().state.equals("idle")) {
                blocks.remove(block.address);
                before.getValue().byteSize += block.byteSize;
            }
        }
    }

    /// A part of a segment.
    private static final class Block {
        final Segment segment;
        final long address;
        long byteSize;
        long requestedBytes;
        String state = "idle";
        String thread = "";
        long bornNanos;
        List<Integer> frames = List.of();

        Block(Segment segment, long address, long byteSize) {
            this.segment = segment;
            this.address = address;
            this.byteSize = byteSize;
        }

        void take(long bytes, String by, long now, List<Integer> stack) {
            state = "live";
            requestedBytes = bytes;
            thread = by;
            bornNanos = now;
            frames = stack;
        }

        Map<String, Object> described(long now) {
            Map<String, Object> described = new LinkedHashMap<>();
            described.put("address", address);
            described.put("byteSize", byteSize);
            described.put("requestedBytes", requestedBytes);
            described.put("state", state);
            if (!state.equals("idle")) {
                described.put("stream", segment.stream);
            }
            if (state.equals("live")) {
                described.put("thread", thread);
                described.put("ageNanos", now - bornNanos);
                described.put("frames", frames);
            }
            return described;
        }
    }
}
