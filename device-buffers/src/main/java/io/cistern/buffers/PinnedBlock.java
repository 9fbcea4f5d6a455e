package io.cistern.buffers;

import io.cistern.graph.GraphMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// A piece of pinned memory: handed out, waiting for streams, or idle. What is not final is guarded by
/// the lock of its [PinnedMemory].
final class PinnedBlock {
    /// A stream that exists.
    record Stream(int device, long handle) {}

    /// A graph whose launches use a block.
    record GraphUse(PinnedMemory owner, PinnedBlock block, GraphMemory graph, int device) implements Runnable {
        /// The graph is gone.
        @Override
        public void run() {
            owner.graphIsGone(this);
        }
    }

    /// A fence behind the last use on a stream.
    record Fence(int device, long number) {}

    final MemorySegment memory;
    final int sizeClass;

    /// In whose context it was pinned.
    final int device;

    /// Whether streams, graphs or fences were ever recorded since it was handed out; read without the lock by who
    /// closes it, after all who recorded.
    volatile boolean used;

    /// How often it was handed out, and came back. Written by whoever holds it, who got it from the one before, so
    /// without an atomic instruction; read by others a little late.
    long handedOut;

    long cameBack;

    /// Streams whose work uses it.
    final Set<Stream> streams = new HashSet<>();

    /// Graphs that exist and use it.
    final Set<GraphUse> graphs = new HashSet<>();

    /// Whether it was freed while graphs use it.
    boolean freedBeforeGraphs;

    /// What it waits for once it is freed.
    final List<Fence> fences = new ArrayList<>();

    PinnedBlock(MemorySegment memory, int sizeClass, int device) {
        this.memory = memory;
        this.sizeClass = sizeClass;
        this.device = device;
    }

    /// 1 from being handed out until the last stream that uses it has passed; else 0.
    long timesInUse() {
        return handedOut - cameBack;
    }
}
