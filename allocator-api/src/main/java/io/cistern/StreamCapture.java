package io.cistern;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.Graphs;

/// A capture that was announced.
final class StreamCapture {
    final int device;
    final long origin;
    final GraphMemory memory;
    private final Graphs graphs;

    /// 0 until the capture has begun.
    private volatile long id;

    StreamCapture(Graphs graphs, int device, long origin, GraphMemory memory) {
        this.graphs = graphs;
        this.device = device;
        this.origin = origin;
        this.memory = memory;
    }

    /// The driver's number of the capture; 0 if it has not begun yet.
    long id() {
        if (id == 0) {
            id = idOf(graphs, device, origin);
        }
        return id;
    }

    /// The driver's number of the capture that a stream is in; 0 if it is in none.
    static long idOf(Graphs graphs, int device, long stream) {
        try {
            return graphs.captureId(device, stream);
        } catch (CudaException notCaptured) {
            return 0; // the legacy default stream beside a captured one that waits for it, or a dead context
        }
    }
}
