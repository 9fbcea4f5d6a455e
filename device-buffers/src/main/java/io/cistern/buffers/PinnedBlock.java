package io.cistern.buffers;

import io.cistern.cuda.DeadContext;
import io.cistern.graph.GraphMemory;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// A piece of pinned memory: handed out, waiting for streams, or idle. The lock of its [PinnedMemory] guards its
/// streams, graphs, fences and `freedBeforeGraphs`.
final class PinnedBlock {
    /// A live stream.
    record Stream(int device, long handle) {}

    /// A graph whose launches use a block.
    record GraphUse(PinnedMemory owner, PinnedBlock block, GraphMemory graph, int device) implements Runnable {
        /// The graph is gone.
        @Override
        public void run() {
            owner.graphIsGone(this);
        }
    }

    /// A fence after the last use on a stream.
    private record Fence(int device, long number) {}

    final MemorySegment memory;
    final int sizeClass;

    /// The device in whose context it was pinned.
    final int device;

    /// Whether a stream, graph or fence was recorded since it was handed out. The closing thread reads it
    /// without the lock, after all threads that recorded a use.
    volatile boolean used;

    /// How often it was handed out, and came back. Only the holder writes these counts, and a block has one holder
    /// at a time, so no atomic instruction is needed. Other threads may read slightly old values.
    long handedOut;

    long cameBack;

    /// Streams whose work uses it.
    final Set<Stream> streams = new HashSet<>();

    /// Live graphs that use it.
    final Set<GraphUse> graphs = new HashSet<>();

    /// Whether it was freed while graphs still used it.
    boolean freedBeforeGraphs;

    /// The fences that it waits for once it is freed.
    private final List<Fence> fences = new ArrayList<>();

    PinnedBlock(MemorySegment memory, int sizeClass, int device) {
        this.memory = memory;
        this.sizeClass = sizeClass;
        this.device = device;
    }

    /// Returns 1 from handing it out until the last stream that uses it has passed; else 0.
    long timesInUse() {
        return handedOut - cameBack;
    }

    /// Makes it wait for all work enqueued on a stream; if the stream ended unannounced, for all work of the device.
    void waitFor(StreamOrder order, int onDevice, long stream) {
        fences.add(new Fence(onDevice, order.record(onDevice, stream)));
    }

    void waitForAll(StreamOrder order, int onDevice) {
        fences.add(new Fence(onDevice, order.recordAll(onDevice)));
    }

    /// Releases the fences that have passed.
    ///
    /// @return whether none is left
    boolean passed(StreamOrder order) {
        fences.removeIf(fence -> order.passed(fence.device, fence.number) && isReleased(order, fence));
        return fences.isEmpty();
    }

    /// Waits on the host for its fences, as far as the driver allows. The others are queried again before it is
    /// unpinned.
    void await(StreamOrder order) {
        fences.removeIf(fence ->
                DeadContext.isDone(() -> order.synchronize(fence.device, fence.number)) && isReleased(order, fence));
    }

    private static boolean isReleased(StreamOrder order, Fence fence) {
        order.release(fence.device, fence.number);
        return true;
    }
}
