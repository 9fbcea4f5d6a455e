package io.cistern.graph;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.capture.GraphBlocks;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.statistics.StatisticsTable;
import java.util.List;
import java.util.Optional;

/// The memory of one or more graphs: blocks that streams allocated or freed while they were captured. It lives as
/// long as the last of its graphs and their executables. Then, as soon as no capture is under way, it goes back. Live
/// blocks of it stay valid until they are freed.
///
/// Several graphs may share one: pass it to the next capture. Then a block that one capture freed may serve
/// the next one, so **launch such graphs in the order of their captures and never side by side**; their
/// results are overwritten by the next launch of another one.
///
/// A block that was allocated before and is freed on a captured stream, such as a library's workspace, is kept with
/// the graph too, since the graph may use it. So is pinned memory that captured work uses, whenever it is closed.
///
/// Two objects for the memory of the same graphs are equal.
///
/// **Threads.** Any thread may call any method at any time.
public final class GraphMemory {
    private final DeviceMemory memory;
    private final GraphBlocks blocks;

    GraphMemory(DeviceMemory memory, GraphBlocks blocks) {
        this.memory = memory;
        this.blocks = blocks;
    }

    /// Makes memory for graphs that will be captured; pass it to [GraphCapture#begin]. Its statistics can be read
    /// before, during and after the first capture.
    public static GraphMemory of(DeviceMemory memory) {
        return new GraphMemory(memory, captures(memory).newMemory());
    }

    /// Returns the memory of the graph that a stream is being captured into; empty if it is not captured.
    ///
    /// @throws io.cistern.errors.UnusableStreamException if it is in a capture that was not announced
    /// @throws io.cistern.cuda.CudaException if the driver won't tell
    public static Optional<GraphMemory> ofCapture(DeviceMemory memory, int device, long stream) {
        return Optional.ofNullable(captures(memory).memoryOf(device, stream))
                .map(blocks -> new GraphMemory(memory, blocks));
    }

    /// Gives back the memory of graphs that are gone, unless a capture is under way. This happens without a call when
    /// a capture begins or ends, at a trim, and when memory runs out.
    ///
    /// @return whether there was any
    public static boolean collect(DeviceMemory memory) {
        return captures(memory).collect();
    }

    static Captures captures(DeviceMemory memory) {
        return memory.moduleSupport().attached(Captures.class).orElseThrow();
    }

    GraphBlocks blocks() {
        return blocks;
    }

    /// Returns the bytes that are reserved for these graphs alone, as far as the allocators can tell. Kept blocks of
    /// other allocators are in the figures of those.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public long reservedBytes(int device) {
        return blocks.reservedBytes(device);
    }

    /// Returns what the framework counted on a device for these graphs alone. Kept blocks of other allocators are in
    /// the figures of those. All figures are 0 once the memory went back.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device, and there is memory
    public AllocatorStatistics statistics(int device) {
        return AllocatorStatistics.sum(blocks.allocators().stream()
                .map(allocator -> statistics(allocator, device))
                .toList());
    }

    private static AllocatorStatistics statistics(OpenAllocator allocator, int device) {
        RouteStatistics counted = allocator.statistics(device);
        return new AllocatorStatistics(
                counted.allocations(),
                counted.frees(),
                allocator.liveBlocks(device),
                counted.requestedBytes(),
                counted.requestedPeakBytes(),
                counted.requestedTotalBytes(),
                allocator.reservedBytes(device));
    }

    /// Returns the statistics of a device as a text for people.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device, and there is memory
    public String memorySummary(int device) {
        return StatisticsTable.text(
                "graphs, device " + device, statistics(device).figures());
    }

    /// Returns the blocks that were allocated for these graphs alone and that the program has not freed: see
    /// [DeviceMemory#leaks].
    public List<LiveBlock> leaks() {
        List<OpenAllocator> own = blocks.allocators();
        return memory.moduleSupport()
                .attached(Leaks.class)
                .orElseThrow()
                .blocks(route -> own.stream().anyMatch(allocator -> allocator.leads(route)));
    }

    /// Returns whether its graphs are gone, so that nothing can be captured into it any more.
    public boolean isGone() {
        return blocks.isGone();
    }

    /// Runs an action once when the graphs are gone, on the thread that gives their memory back. An action that throws
    /// is run again when memory of graphs is collected next. An action that equals a waiting one is not added.
    ///
    /// @return false if they are gone already, and the action does not run
    public boolean whenGone(Runnable action) {
        return blocks.whenGone(action);
    }

    /// Returns whether the other object is the memory of the same graphs.
    @Override
    public boolean equals(Object other) {
        return other instanceof GraphMemory that && that.blocks == blocks;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(blocks);
    }
}
