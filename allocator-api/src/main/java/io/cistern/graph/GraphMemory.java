package io.cistern.graph;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.diagnostics.KeptBlock;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.internal.capture.Captures;
import io.cistern.internal.capture.GraphBlocks;
import io.cistern.internal.leaks.Leaks;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.statistics.StatisticsTable;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/// The memory of one or more graphs: blocks that were allocated or freed on streams that were being
/// captured into these graphs. It goes back when all of its graphs and their executables are gone. Memory
/// that work outside the graphs also used goes back only while no capture is under way. Live blocks stay
/// valid until they are freed.
///
/// Several graphs may share one memory: pass it to the next capture. A block that was freed in one capture
/// may then serve the next capture. So **launch such graphs in the order of their captures and never
/// concurrently**: a launch of one graph overwrites the results of the others.
///
/// The memory also keeps blocks that were allocated before the capture and freed on a captured stream, such
/// as a library's workspace, since the graph may use them. It also keeps pinned memory that captured work
/// uses, even if the program closes it.
///
/// **Threads.** Any thread may call any method at any time.
public final class GraphMemory {
    private final DeviceMemory memory;
    private final GraphBlocks blocks;

    GraphMemory(DeviceMemory memory, GraphBlocks blocks) {
        this.memory = memory;
        this.blocks = blocks;
    }

    /// Creates the memory of graphs that will be captured; pass it to [GraphCapture#begin]. Its statistics
    /// can be read at any time.
    public static GraphMemory of(DeviceMemory memory) {
        return new GraphMemory(memory, captures(memory).newMemory());
    }

    /// Returns the memory of the graph that a stream is being captured into; empty if the stream is not
    /// being captured.
    ///
    /// @throws io.cistern.errors.UnusableStreamException if the stream is in an unannounced capture while
    ///     an announced one is under way on the device
    /// @throws io.cistern.cuda.CudaException if the driver doesn't report whether the stream is being
    ///     captured
    public static Optional<GraphMemory> ofCapture(DeviceMemory memory, int device, long stream) {
        return Optional.ofNullable(captures(memory).memoryOf(device, stream))
                .map(blocks -> new GraphMemory(memory, blocks));
    }

    /// Gives back the memory of graphs that are gone. While a capture is under way, memory that work
    /// outside the graphs also used stays. The driver may report the end of a graph a little after the
    /// graph's last launch has ended. So this call waits for the reports about graphs that the program has
    /// closed, for at most 20 ms for each device. Memory also goes back without this call: when a capture
    /// begins or ends, at a trim, when a pool closes, and when memory runs out or a limit refuses.
    ///
    /// @return whether anything was given back
    public static boolean collect(DeviceMemory memory) {
        return captures(memory).collectFinished();
    }

    static Captures captures(DeviceMemory memory) {
        return memory.moduleSupport().attached(Captures.class).orElseThrow();
    }

    GraphBlocks blocks() {
        return blocks;
    }

    /// Returns the bytes that are reserved only for these graphs, as far as the allocators report them.
    /// Kept blocks of other allocators count in the statistics of those allocators.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device, unless these graphs have no memory
    public long reservedBytes(int device) {
        return blocks.reservedBytes(device);
    }

    /// Returns the framework's counts for these graphs alone on a device. Kept blocks of other allocators
    /// count in the statistics of those allocators. The requested bytes include freed blocks whose memory
    /// the graphs keep; memory that is reused counts once. After the memory has gone back, no live blocks,
    /// requested bytes or reserved bytes are left; the peak and the totals stay.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device, unless these graphs have no memory
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
                allocator.knownReservedBytes(device));
    }

    /// Returns the statistics of a device as human-readable text.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device, unless these graphs have no memory
    public String memorySummary(int device) {
        return StatisticsTable.text(
                "graphs, device " + device, statistics(device).figures());
    }

    /// Returns the blocks that were allocated only for these graphs and that the program has not freed: see
    /// [DeviceMemory#liveBlocks].
    public List<LiveBlock> liveBlocks() {
        List<OpenAllocator> own = blocks.allocators();
        return memory.moduleSupport()
                .attached(Leaks.class)
                .orElseThrow()
                .blocks(route -> own.stream().anyMatch(allocator -> allocator.leads(route)));
    }

    /// Returns the blocks of a device memory that the program has freed and graphs still keep.
    public static List<KeptBlock> kept(DeviceMemory memory) {
        return memory.moduleSupport().attached(Leaks.class).orElseThrow().kept();
    }

    /// Keeps this memory until the returned hold is closed. This is for graphs that the program has no
    /// handle for, because a framework captures them and reports only when one of its graphs is gone. Call
    /// this method before you [announce][GraphCapture#announceEnd] the end of the capture with graph 0.
    ///
    /// @return a hold, to be closed when those graphs and their executables are gone
    /// @throws IllegalStateException if the graphs of this memory are gone
    public Hold hold() {
        return new Hold(blocks);
    }

    /// Keeps the memory of graphs, as the graphs themselves do: see [GraphMemory#hold].
    ///
    /// **Threads.** Any thread may close it at any time.
    public static final class Hold implements AutoCloseable {
        private final GraphBlocks blocks;
        private final AtomicBoolean closed = new AtomicBoolean();

        private Hold(GraphBlocks blocks) {
            this.blocks = blocks;
            blocks.use();
            blocks.mayRun();
        }

        /// Releases the memory, which goes back when the last of its graphs is gone and no hold is left.
        /// Closing twice does nothing.
        @Override
        public void close() {
            if (!closed.getAndSet(true)) {
                blocks.release();
            }
        }
    }

    /// Records which blocks of these graphs are alive, so that this state can be restored later: see
    /// [Checkpoint].
    ///
    /// No other thread may allocate or free blocks of these graphs during the call.
    ///
    /// @return a checkpoint, which the caller closes
    /// @throws IllegalStateException if a stream is being captured into this memory, or its graphs are gone
    public Checkpoint checkpoint() {
        return new Checkpoint(blocks, captures(memory));
    }

    /// A record of which blocks of some graphs were alive at one moment.
    ///
    /// It is for graphs that share memory, where a first graph may be followed by any one of several
    /// others. Take a checkpoint after the capture of the first graph, and restore it before the capture of
    /// each of the others. Then no other graph gets the memory in which the first graph leaves its results,
    /// although the program has freed these results after an earlier launch. All of the other graphs share
    /// the rest of the memory.
    ///
    /// ```java
    /// GraphMemory shared = first.memory();
    /// GraphMemory.Checkpoint afterFirst = shared.checkpoint();
    /// ... // launch, capture and launch others, free the results
    /// List<Long> results = afterFirst.restore(); // alive again, where the first graph writes them
    /// GraphCapture next = GraphCapture.begin(memory, device, stream, mode, shared);
    /// ```
    ///
    /// **Until the checkpoint is closed**, a recorded block keeps its memory even if the program frees the
    /// block, and that memory serves no capture. So the blocks in open checkpoints never share memory with
    /// each other, even if they belong to graphs of which only one runs at a time. The statistics and
    /// limits count a recorded block that the program has freed, and [GraphMemory#liveBlocks] doesn't list it.
    ///
    /// Destroy no graph whose blocks are in an open checkpoint, unless you destroy all graphs of this
    /// memory: the driver may give the addresses of a graph that is gone to another graph.
    ///
    /// **Threads.** Any thread may call any method, but no other thread may allocate or free blocks of
    /// these graphs during the call.
    public static final class Checkpoint implements AutoCloseable {
        private final GraphBlocks blocks;
        private final Captures captures;
        private final long[] noted;

        private Checkpoint(GraphBlocks blocks, Captures captures) {
            this.blocks = blocks;
            this.captures = captures;
            this.noted = blocks.checkpoint();
        }

        /// Restores the memory: after this call, exactly the recorded blocks are alive, each at its
        /// address, and the next capture finds all other memory free. Contents do not change. The call can
        /// be repeated.
        ///
        /// This call frees no blocks that were allocated after the checkpoint, because code may still hold
        /// them: free these blocks first. Recorded blocks that the program has not freed stay alive.
        ///
        /// @return the recorded blocks that the program had freed; the caller frees them again
        /// @throws IllegalStateException if this checkpoint is closed; if the graphs of this memory are
        ///     gone; if a stream is being captured into this memory; if a live block of these graphs is not
        ///     in the checkpoint; or if a recorded block was freed on a stream that was being captured into
        ///     a graph of another memory, which now keeps the block. Nothing has changed then
        public List<Long> restore() {
            return blocks.restore(noted);
        }

        /// Gives back the recorded blocks that the program has freed, unless they are also in another open
        /// checkpoint. If a stream is being captured, the blocks go back after the capture. Live blocks
        /// stay alive. Closing twice does nothing.
        ///
        /// @throws io.cistern.cuda.CudaException if the driver refuses to order the frees after other work;
        ///     the blocks then go back with the memory of the graphs
        @Override
        public void close() {
            blocks.closeCheckpoint(noted, captures);
        }
    }

    /// Returns whether the graphs of this memory are gone, so that nothing can be captured into it any
    /// more.
    public boolean isGone() {
        return blocks.isGone();
    }

    /// Runs an action once when the graphs are gone, on the thread that gives their memory back. An action
    /// that throws an exception runs again the next time memory of graphs is collected. An action that
    /// equals a waiting action is not added.
    ///
    /// @return false if the graphs are gone already; the action does not run then
    public boolean whenGone(Runnable action) {
        return blocks.whenGone(action);
    }

    /// Returns a name that distinguishes this memory from that of other graphs, such as `graph memory 2`.
    @Override
    public String toString() {
        return blocks.toString();
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
