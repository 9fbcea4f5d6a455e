package io.cistern.cli.fit;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import net.razorvine.pickle.Pickler;

/// A program as a snapshot of PyTorch's has it: what was allocated and freed, by whom, in which segments.
public final class TorchProgram {
    static final long MIB = 1L << 20;
    private static final long BASE = 0x7f00_0000_0000L;
    private static final String LIBRARY = "/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py";

    private final int device;
    private final List<Object> trace = new ArrayList<>();
    private final Map<Long, Long> segments = new TreeMap<>();
    private final Map<Long, Map<String, Object>> live = new TreeMap<>();
    private final List<Object> marks = new ArrayList<>();
    private Map<String, ?> settings = Map.of("expandable_segments", false);
    private long micros = 1_795_687_399_000_000L;

    public TorchProgram(int device) {
        this.device = device;
    }

    private TorchProgram event(String action, long address, long byteSize, int line) {
        micros += 1000;
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("action", action);
        entry.put(action.equals("oom") ? "device_free" : "addr", address);
        entry.put("size", byteSize);
        entry.put("stream", 0);
        entry.put("time_us", micros);
        entry.put("frames", frames(line));
        trace.add(entry);
        return this;
    }

    /// Returns the stack of a line of `train.py`, beneath PyTorch's own code.
    static List<Object> frames(int line) {
        return line == 0
                ? List.of()
                : List.of(
                        frame("c10::cuda::CUDACachingAllocator::malloc", "??", 0),
                        frame("forward", LIBRARY, 134),
                        frame("step", "/home/me/train.py", line),
                        frame("<module>", "/home/me/train.py", 99));
    }

    private static Map<String, Object> frame(String name, String file, int line) {
        return Map.of("name", name, "filename", file, "line", line);
    }

    public TorchProgram segment(long address, long byteSize) {
        segments.put(address, byteSize);
        return event("segment_alloc", address, byteSize, 0);
    }

    /// Gives a segment back to the driver.
    public TorchProgram release(long address) {
        return event("segment_free", address, segments.remove(address), 0);
    }

    public TorchProgram allocate(long address, long byteSize, int line) {
        live.put(
                address,
                Map.of(
                        "address",
                        address,
                        "size",
                        byteSize,
                        "requested_size",
                        byteSize,
                        "state",
                        "active_allocated",
                        "frames",
                        frames(line)));
        return event("alloc", address, byteSize, line);
    }

    public TorchProgram free(long address) {
        Map<String, Object> block = live.remove(address);
        long byteSize = (long) block.get("size");
        return event("free_requested", address, byteSize, 0).event("free_completed", address, byteSize, 0);
    }

    /// Frees a block that another stream still uses, as after `record_stream`.
    public TorchProgram requestFree(long address) {
        Map<String, Object> block = new LinkedHashMap<>(live.get(address));
        block.put("state", "active_awaiting_free");
        live.put(address, block);
        return event("free_requested", address, (long) block.get("size"), 0);
    }

    /// Loses the events so far, as a ring does. What is live stays.
    public TorchProgram forget() {
        trace.clear();
        return this;
    }

    public TorchProgram refused(long byteSize, long deviceFree, int line) {
        return event("oom", deviceFree, byteSize, line);
    }

    /// Lets time pass.
    public TorchProgram pass(long passedMicros) {
        micros += passedMicros;
        return this;
    }

    /// Sets what the snapshot records of the allocator's settings.
    public TorchProgram settings(Map<String, ?> recorded) {
        settings = recorded;
        return this;
    }

    public TorchProgram mark(String name) {
        marks.add(Map.of("device", device, "time_us", micros, "name", name, "stage", "START"));
        return this;
    }

    public Path write(Path file) throws IOException {
        return write(file, this);
    }

    /// Writes the programs of several devices into one snapshot.
    public static Path write(Path file, TorchProgram... programs) throws IOException {
        List<Object> traces = new ArrayList<>();
        List<Object> segments = new ArrayList<>();
        List<Object> marks = new ArrayList<>();
        for (TorchProgram program : programs) {
            traces.add(program.trace);
            marks.addAll(program.marks);
            program.segments.forEach((address, byteSize) -> segments.add(program.snapshotOf(address, byteSize)));
        }
        Map<String, Object> snapshot = Map.of(
                "device_traces",
                traces,
                "segments",
                segments,
                "allocator_settings",
                programs[0].settings,
                "external_annotations",
                marks);
        return Files.write(file, new Pickler().dumps(snapshot));
    }

    private Map<String, Object> snapshotOf(long address, long byteSize) {
        List<Object> blocks = new ArrayList<>();
        long end = address;
        for (Map<String, Object> block : live.values()) {
            long at = (long) block.get("address");
            if (at >= address && at < address + byteSize) {
                addIdle(end, at, blocks);
                blocks.add(block);
                end = at + (long) block.get("size");
            }
        }
        addIdle(end, address + byteSize, blocks);
        return Map.of(
                "device",
                device,
                "address",
                address,
                "total_size",
                byteSize,
                "stream",
                0,
                "segment_type",
                "large",
                "blocks",
                blocks);
    }

    private static void addIdle(long from, long to, List<Object> blocks) {
        if (from < to) {
            blocks.add(Map.of("address", from, "size", to - from, "requested_size", 0L, "state", "inactive"));
        }
    }

    /// A training of many steps, each of which allocates a block of 64 MiB and many small ones, and frees them.
    public static TorchProgram ofManyEvents(int steps) {
        TorchProgram program = new TorchProgram(0).segment(BASE, 128 * MIB);
        for (int step = 0; step < steps; step++) {
            program.allocate(BASE, 64 * MIB, 88);
            for (int block = 1; block <= 100; block++) {
                program.allocate(BASE + 64 * MIB + block * 4096L, 4096, 70 + block % 7);
            }
            for (int block = 1; block <= 100; block++) {
                program.free(BASE + 64 * MIB + block * 4096L);
            }
            program.free(BASE);
        }
        return program.allocate(BASE, MIB, 12);
    }

    /// A training that PyTorch refuses: 40 segments of 20 MiB keep a block of 4 MiB each, so of 800 MiB that are
    /// reserved 640 are free, but no 100 MiB in a row. Line 88 allocated what is left, line 70 the rest.
    public static TorchProgram fragmented(int device) {
        TorchProgram program = new TorchProgram(device);
        for (int segment = 0; segment < 40; segment++) {
            long base = 0x7f00_0000_0000L + segment * 32 * MIB;
            program.segment(base, 20 * MIB);
            for (int block = 0; block < 5; block++) {
                program.allocate(base + block * 4 * MIB, 4 * MIB, block == 2 ? 88 : 70);
            }
        }
        for (int segment = 0; segment < 40; segment++) {
            long base = 0x7f00_0000_0000L + segment * 32 * MIB;
            for (int block = 0; block < 5; block++) {
                if (block != 2) {
                    program.free(base + block * 4 * MIB);
                }
            }
        }
        return program.mark("epoch 2").refused(100 * MIB, 50 * MIB, 90);
    }
}
