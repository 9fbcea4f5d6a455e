package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.observability.internal.JsonWriter;
import io.cistern.observability.internal.SnapshotMaker;
import io.cistern.observability.internal.TorchPickle;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;

/// Shows a [DeviceMemory] at one moment: segments with their live and idle blocks, figures of allocators,
/// settings, and the [history][MemoryHistory] if one was recorded.
///
/// **How exact.** Other threads may allocate while a snapshot is taken. So each segment is consistent in
/// itself, but different segments may show different moments. Blocks have their stream, thread, age and
/// site if the history or the [leak level][io.cistern.diagnostics.LeakLevel] records them.
///
/// **Threads.** Immutable. Any thread may take a snapshot, even in an
/// [observer][io.cistern.Listeners#onEvent].
///
/// @param takenAt when the snapshot was taken
/// @param reason why the snapshot was taken, in words: `on demand`, `out of memory`, `peak of a replay`
/// @param settings the `cistern.…` properties and `CISTERN_…` variables that are set, by name
/// @param driver a description of the driver
/// @param devices the devices that this process uses, without those whose free memory the driver fails to report
/// @param allocators the figures of allocators and pools, one entry for each device on which any
///     figure is not 0
/// @param segments the memory, by device and address
/// @param history the recorded history; empty if there was none
/// @param outOfMemory the report of the refused request for which the snapshot was taken; empty if there
///     was no such request
public record MemorySnapshot(
        Instant takenAt,
        String reason,
        Map<String, String> settings,
        String driver,
        List<Device> devices,
        List<AllocatorFigures> allocators,
        List<Segment> segments,
        Optional<History> history,
        Optional<OutOfMemoryReport> outOfMemory) {

    /// Describes one device.
    ///
    /// @param ordinal the device's ordinal
    /// @param name the device's name
    /// @param totalBytes the size of the device's memory
    /// @param freeBytes bytes that no process uses, as the driver reports
    public record Device(int ordinal, String name, long totalBytes, long freeBytes) {}

    /// Holds the figures of an allocator or pool on one device.
    ///
    /// @param name its spec, or the pool's name
    /// @param pool the pool's tag; empty if it is not a pool
    /// @param device the device
    /// @param current whether it is the device's current allocator
    /// @param figures its figures by the names of [io.cistern.Allocator#memoryStatistics]
    public record AllocatorFigures(
            String name, Optional<String> pool, int device, boolean current, Map<String, Long> figures) {}

    /// Describes a range of memory that an allocator manages.
    ///
    /// @param allocator the allocator that manages it
    /// @param device the device
    /// @param address its first address
    /// @param byteSize its length in bytes
    /// @param stream the stream that its idle blocks serve; empty if unknown, or if they serve any stream
    /// @param expandable whether it can grow inside a larger range of addresses
    /// @param reported true if the allocator reported it as a segment; false if it is a single block outside all
    ///     reported segments, live or kept by a graph
    /// @param blocks its blocks by address
    public record Segment(
            String allocator,
            int device,
            long address,
            long byteSize,
            OptionalLong stream,
            boolean expandable,
            boolean reported,
            List<Block> blocks) {}

    /// Describes one block of a segment.
    ///
    /// @param address its first address
    /// @param byteSize its length in bytes
    /// @param requestedBytes bytes that the program requested; 0 if the block is not live
    /// @param state what it is used for
    /// @param stream the stream for which it was allocated; empty if unknown
    /// @param thread the thread that allocated it; empty if unknown
    /// @param scope the allocator or pool of that thread's innermost scope at the allocation; empty if
    ///     there was none, or if unknown
    /// @param ageNanos its age in nanoseconds; empty if unknown
    /// @param site the program's stack frames that allocated it, innermost first; empty if unknown
    /// @param graph the [io.cistern.graph.GraphMemory] that keeps it after its free; empty if none does
    public record Block(
            long address,
            long byteSize,
            long requestedBytes,
            State state,
            OptionalLong stream,
            Optional<String> thread,
            Optional<String> scope,
            OptionalLong ageNanos,
            List<StackTraceElement> site,
            Optional<String> graph) {}

    /// The uses of a block.
    public enum State {
        /// The program owns it.
        LIVE,
        /// It was freed, but another stream, or a graph, may still use it.
        WAITING,
        /// A thread's cache keeps it for the thread's next allocations.
        CACHED,
        /// It is free for any request of its allocator.
        IDLE
    }

    /// Holds the recording of a [MemoryHistory].
    ///
    /// @param startedAt when the recording started
    /// @param startNanos the same moment on the clock of [System#nanoTime]
    /// @param options the options of the recording
    /// @param lost the number of events that were replaced by later ones or could not be recorded
    /// @param entries the events, the oldest first
    public record History(
            Instant startedAt, long startNanos, HistoryOptions options, long lost, List<HistoryEntry> entries) {}

    /// Takes a snapshot of all devices.
    public static MemorySnapshot take(DeviceMemory memory) {
        return take(memory, "on demand");
    }

    /// Takes a snapshot of all devices for a given reason.
    ///
    /// @param reason why the snapshot is taken, in words
    public static MemorySnapshot take(DeviceMemory memory, String reason) {
        return new SnapshotMaker(memory).make(reason, Optional.empty());
    }

    /// Takes a snapshot for a refused request.
    public static MemorySnapshot take(DeviceMemory memory, OutOfMemoryReport report) {
        return new SnapshotMaker(memory).make("out of memory", Optional.of(report));
    }

    /// Writes the snapshot to a file: as PyTorch's pickle if the name ends in `.pickle` or
    /// `.pkl`, else as JSON.
    ///
    /// @throws IOException if the snapshot can't be written
    public void write(Path file) throws IOException {
        String name = String.valueOf(file.getFileName()).toLowerCase(Locale.ROOT);
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            if (name.endsWith(".pickle") || name.endsWith(".pkl")) {
                writePickle(out);
            } else {
                writeJson(out);
            }
        }
    }

    /// Returns a stream over the JSON schema of what [#writeJson] writes; the caller closes the stream.
    public static InputStream schema() {
        return Objects.requireNonNull(MemorySnapshot.class.getResourceAsStream("snapshot.schema.json"));
    }

    /// Writes the snapshot as JSON, in the format of the [schema][#schema].
    ///
    /// @param out the stream to write to; it stays open
    /// @throws IOException if the snapshot can't be written
    public void writeJson(OutputStream out) throws IOException {
        JsonWriter.write(this, out);
    }

    /// Writes the snapshot in the format of a pickled `torch.cuda.memory._snapshot`, for `python -m
    /// torch.cuda._memory_viz` and PyTorch's viewer.
    ///
    /// @param out the stream to write to; it stays open
    /// @throws IOException if the snapshot can't be written
    public void writePickle(OutputStream out) throws IOException {
        TorchPickle.write(this, out);
    }
}
