package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// A capture under way: the graph so far, and for each stream in it the nodes that its next node follows.
/// Guarded by the machine's lock.
final class Capture {
    final long id;
    final StreamQueue origin;
    final CaptureMode mode;
    final Thread owner;
    final Graph graph;
    final long graphHandle;
    private final Map<StreamQueue, List<GraphNode>> ends = new LinkedHashMap<>();
    boolean invalidated;
    private boolean ended;

    Capture(long id, StreamQueue origin, CaptureMode mode, Graph graph, long graphHandle) {
        this.id = id;
        this.origin = origin;
        this.mode = mode;
        this.owner = Thread.currentThread();
        this.graph = graph;
        this.graphHandle = graphHandle;
        ends.put(origin, List.of());
    }

    void invalidate() {
        invalidated = true;
    }

    void end() {
        ended = true;
    }

    Set<StreamQueue> streams() {
        return ends.keySet();
    }

    List<GraphNode> ends(StreamQueue stream) {
        return ends.getOrDefault(stream, List.of());
    }

    GraphNode add(StreamQueue stream, String kind, GraphNode.Issue work) {
        requireValid();
        return follow(stream, graph.add(kind, ends(stream), work));
    }

    GraphNode allocate(StreamQueue stream, long byteSize) {
        requireValid();
        return follow(stream, graph.allocate(ends(stream), byteSize));
    }

    GraphNode free(StreamQueue stream, long address) {
        requireValid();
        return follow(stream, graph.free(ends(stream), address));
    }

    private GraphNode follow(StreamQueue stream, GraphNode node) {
        ends.put(stream, List.of(node));
        return node;
    }

    void requireValid() {
        failIf(invalidated, CudaResult.STREAM_CAPTURE_INVALIDATED);
    }

    /// Makes a stream's next node follow other nodes too. A stream outside the capture joins it.
    void await(StreamQueue stream, List<GraphNode> others) {
        failIf(ended, CudaResult.CAPTURED_EVENT);
        Set<GraphNode> both = new LinkedHashSet<>(ends(stream));
        both.addAll(others);
        ends.put(stream, new ArrayList<>(both));
    }

    /// Returns whether all nodes run before the end of the stream on which the capture began.
    boolean isJoined() {
        return ends.values().stream().flatMap(List::stream).allMatch(node -> node.precedes(ends(origin)));
    }
}
