package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.diagnostics.OutOfMemoryReport;
import io.cistern.observability.internal.JsonWriter;
import io.cistern.observability.internal.SnapshotMaker;
import io.cistern.observability.internal.TorchPickle;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// What a [DeviceMemory] looked like at one moment: segments with their live and idle blocks, figures of
/// allocators, settings, and the [history][MemoryHistory] if one was recorded.
///
/// **How exact.** Other threads may allocate while a snapshot is taken: each segment is of one moment, the
/// whole is not. Blocks have their stream, thread, age and site if the history or the [leak
/// level][io.cistern.diagnostics.LeakLevel] knows them.
///
/// **Threads.** Immutable. Any thread may take one, in an observer too.
///
/// @param takenAt when
/// @param reason why, in words: `on demand`, `out of memory`, `peak of a replay`
/// @param settings what is set of `cistern.…`, by name
/// @param driver the driver, in words
/// @param devices the devices that this process uses
/// @param allocators allocators and pools with their figures, one entry a device that they have memory of
/// @param segments the memory, by device and address
/// @param history what was recorded
/// @param outOfMemory the refusal because of which it was taken
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

    /// A device.
    ///
    /// @param ordinal its number
    /// @param name its name
    /// @param totalBytes all its memory
    /// @param freeBytes what the driver says is free, for all processes
    public record Device(int ordinal, String name, long totalBytes, long freeBytes) {}

    /// An allocator's or pool's figures on a device.
    ///
    /// @param name its spec, or the pool's name
    /// @param pool the pool's tag; empty if it is no pool
    /// @param device the device
    /// @param current whether it is current there
    /// @param figures by the names of [io.cistern.Allocator#memoryStatistics]
    public record AllocatorFigures(
            String name, Optional<String> pool, int device, boolean current, Map<String, Long> figures) {}

    /// A range of memory.
    ///
    /// @param allocator whose it is
    /// @param device the device
    /// @param address where it begins
    /// @param byteSize its length
    /// @param stream the stream that its idle blocks serve; empty if unknown, or any
    /// @param reported whether the allocator told of it; if not, it is one live block of an allocator that
    ///     tells of no segments
    /// @param blocks its blocks by address
    public record Segment(
            String allocator,
            int device,
            long address,
            long byteSize,
            OptionalLong stream,
            boolean reported,
            List<Block> blocks) {}

    /// A part of a segment.
    ///
    /// @param address where it begins
    /// @param byteSize its length
    /// @param requestedBytes bytes that the program asked for; 0 if it is not live
    /// @param state what it is used for
    /// @param stream the stream it was allocated for; empty if unknown
    /// @param thread the thread that allocated it; empty if unknown
    /// @param scope the allocator or pool of the innermost scope that this thread was in then; empty if it was in
    ///     none or the history does not know
    /// @param ageNanos how long ago; empty if unknown
    /// @param site the place in the program that did, the innermost frame first; empty if unknown
    public record Block(
            long address,
            long byteSize,
            long requestedBytes,
            State state,
            OptionalLong stream,
            Optional<String> thread,
            Optional<String> scope,
            OptionalLong ageNanos,
            List<StackTraceElement> site) {}

    /// What a block is used for.
    public enum State {
        /// A program has it.
        LIVE,
        /// It was freed, but another stream, or a graph, may still use it.
        WAITING,
        /// A thread's cache keeps it for the thread's next allocations.
        CACHED,
        /// It is free.
        IDLE
    }

    /// What a [MemoryHistory] recorded.
    ///
    /// @param startedAt when it was started
    /// @param startNanos the same moment, as [System#nanoTime] tells the time
    /// @param options how it recorded
    /// @param lost events that it has no more, or could not record
    /// @param entries the events, the oldest first
    public record History(
            Instant startedAt, long startNanos, HistoryOptions options, long lost, List<HistoryEntry> entries) {}

    /// Takes a snapshot of all devices.
    ///
    /// @throws io.cistern.cuda.CudaException if the driver can't tell what a device has free
    public static MemorySnapshot take(DeviceMemory memory) {
        return take(memory, "on demand");
    }

    /// Takes a snapshot of all devices for a reason.
    ///
    /// @param reason why, for people
    public static MemorySnapshot take(DeviceMemory memory, String reason) {
        return new SnapshotMaker(memory).make(reason, Optional.empty());
    }

    /// Takes a snapshot because of a refusal.
    public static MemorySnapshot take(DeviceMemory memory, OutOfMemoryReport report) {
        return new SnapshotMaker(memory).make("out of memory", Optional.of(report));
    }

    /// Writes it to a file: as PyTorch's pickle if the name ends in `.pickle` or `.pkl`, else as JSON.
    ///
    /// @throws IOException if it can't be written
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

    /// Writes it as JSON, as `docs/snapshot.md` and its schema say.
    ///
    /// @param out is left open
    /// @throws IOException if it can't be written
    public void writeJson(OutputStream out) throws IOException {
        JsonWriter.write(this, out);
    }

    /// Writes it as PyTorch's `torch.cuda.memory._snapshot` is pickled, for `python -m
    /// torch.cuda._memory_viz` and PyTorch's viewer.
    ///
    /// @param out is left open
    /// @throws IOException if it can't be written
    public void writePickle(OutputStream out) throws IOException {
        TorchPickle.write(this, out);
    }
}
