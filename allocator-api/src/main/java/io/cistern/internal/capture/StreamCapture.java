package io.cistern.internal.capture;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Graphs;
import io.cistern.internal.threads.NodeQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// An announced capture.
public final class StreamCapture {
    final int device;
    final long origin;
    final GraphBlocks memory;

    /// The capture under way that was announced before this one. Kept when this one ends, so that a
    /// concurrent traversal still reaches the older captures. Written by [Captures].
    volatile @Nullable StreamCapture older;

    volatile boolean isOver;

    /// Made in advance, since a capture can end with a full Java heap.
    final Runnable whenGone;

    /// Queues the graph if it is given up.
    final NodeQueue.Node<StreamCapture> whenGivenUp = new NodeQueue.Node<>(this);

    /// Destroys the graph, or its executable, if it was given up.
    volatile @Nullable Runnable givenUp;

    private volatile long graph;

    /// Made in advance, like [#whenGone].
    private final Runnable destroying = this::destroyGraph;

    private final AtomicBoolean released = new AtomicBoolean();

    /// Whether the program has closed the graph, and whether the driver has reported it gone. Guarded by
    /// [ClosedGraphs].
    boolean isClosed;

    boolean isTold;

    private final Graphs graphs;

    /// 0 until first queried after the capture began. Written under the monitor of this.
    private volatile long id;

    StreamCapture(Graphs graphs, int device, long origin, GraphBlocks memory, ClosedGraphs closed) {
        this.graphs = graphs;
        this.device = device;
        this.origin = origin;
        this.memory = memory;
        this.whenGone = () -> {
            release();
            closed.told(this);
        };
    }

    /// Ends the use of the memory: there is no graph, it will not be launched, or it is gone. Only the
    /// first call has an effect. Makes no driver call.
    void release() {
        if (!released.getAndSet(true)) {
            memory.release();
        }
    }

    /// Returns an action that destroys the graph of this capture.
    Runnable destroying(long its) {
        graph = its;
        return destroying;
    }

    private void destroyGraph() {
        graphs.destroy(device, graph);
    }

    public int device() {
        return device;
    }

    public long origin() {
        return origin;
    }

    /// Returns the memory from which the captured streams allocate.
    public GraphBlocks memory() {
        return memory;
    }

    /// Returns the driver's number of the capture; 0 if it has not begun, or ended before the first query.
    ///
    /// @throws CudaException if the driver doesn't report it
    long id() {
        if (id == 0) {
            askForId();
        }
        return id;
    }

    /// Asks the driver while the capture can't end: after its end, the program may destroy the stream, or
    /// capture it again.
    private synchronized void askForId() {
        if (id == 0 && !isOver) {
            id = idOf(graphs, device, origin);
        }
    }

    /// Marks the capture as ended.
    synchronized void end() {
        isOver = true;
    }

    /// Whether a stream is in this capture.
    ///
    /// @throws CudaException if the driver doesn't report it
    boolean holds(long stream) {
        long its = idOf(graphs, device, stream);
        return its != 0 && its == id();
    }

    /// Returns whether the capture has a number; true also if the driver doesn't report it.
    boolean mayBe(long captureId) {
        try {
            return id() == captureId;
        } catch (CudaException untold) {
            return true;
        }
    }

    /// Returns the driver's number of the capture that a stream is in; 0 if it is in none.
    ///
    /// @throws CudaException if the driver doesn't report it
    static long idOf(Graphs graphs, int device, long stream) {
        try {
            return graphs.captureId(device, stream);
        } catch (CudaException untold) {
            // The legacy default stream, while a stream that waits for it is captured.
            boolean legacyDefault = untold.result() == CudaResult.STREAM_CAPTURE_IMPLICIT;
            if (legacyDefault || untold.result().endsContext()) {
                return 0;
            }
            throw untold;
        }
    }
}
