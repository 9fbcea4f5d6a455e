package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.CudaResult;
import io.cistern.simulated.GraphMemory.GraphAllocation;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A graph that can be launched. Guarded by the machine's lock.
///
/// 1. Nodes are spread over *lanes*, which are queues that no program sees. A node goes to the lane whose last
///    node it follows, or to a new lane. So unordered nodes run concurrently, as on a device, and their
///    races show.
/// 2. A launch puts a mark into the stream and makes each lane wait for it and for the previous launch. It
///    enqueues every node in its lane, after the nodes that it follows, and makes the stream wait for all
///    of them.
final class ExecutableGraph {
    private final Machine machine;
    final Graph graph;
    private final boolean freesOnLaunch;
    private List<GraphNode> nodes;
    private final Map<GraphNode, StreamQueue> laneOf = new HashMap<>();
    private final List<StreamQueue> lanes = new ArrayList<>();

    @Nullable
    Work last;

    StreamClock lastClock = new StreamClock();

    ExecutableGraph(Machine machine, Graph graph, boolean freesOnLaunch) {
        this.machine = machine;
        this.graph = graph;
        this.freesOnLaunch = freesOnLaunch;
        this.nodes = List.copyOf(graph.nodes);
        spread();
    }

    private void spread() {
        laneOf.clear();
        Map<StreamQueue, GraphNode> ends = new HashMap<>();
        for (GraphNode node : nodes) {
            StreamQueue lane = node.dependencies().stream()
                    .filter(before -> before.equals(ends.get(laneOf.get(before))))
                    .findFirst()
                    .map(laneOf::get)
                    .orElseGet(() -> laneWithout(ends));
            laneOf.put(node, lane);
            ends.put(lane, node);
        }
    }

    private StreamQueue laneWithout(Map<StreamQueue, GraphNode> ends) {
        if (ends.size() == lanes.size()) {
            lanes.add(machine.streams.unnamed(graph.device));
        }
        return lanes.get(ends.size());
    }

    /// Takes over the work of a graph of the same shape.
    void update(Graph other) {
        boolean same = other.nodes.size() == nodes.size();
        for (int i = 0; same && i < nodes.size(); i++) {
            same = places(nodes, nodes.get(i)).equals(places(other.nodes, other.nodes.get(i)));
        }
        failIf(
                !same || !graph.allocations.isEmpty() || !other.allocations.isEmpty(),
                CudaResult.GRAPH_EXEC_UPDATE_FAILURE);
        nodes = List.copyOf(other.nodes);
        spread();
    }

    /// Returns the kind of a node, and the positions of the nodes that it follows.
    private static List<Object> places(List<GraphNode> all, GraphNode node) {
        List<Object> places = new ArrayList<>(List.of(node.kind()));
        node.dependencies().forEach(before -> places.add(all.indexOf(before)));
        return places;
    }

    void launch(StreamQueue stream) {
        List<GraphAllocation> kept =
                graph.unfreed().stream().filter(each -> each.live).toList();
        require(kept.isEmpty() || freesOnLaunch);
        machine.graphMemory(graph.device).back(graph.allocations);
        kept.forEach(allocation -> allocation.free(stream));
        Work start = Work.waitingFor(last == null ? List.of() : List.of(last));
        machine.streams.enqueue(stream, start);
        stream.clock().include(lastClock);
        StreamClock before = through(stream);
        Map<GraphNode, Issued> issued = new HashMap<>();
        for (GraphNode node : nodes) {
            issued.put(node, issue(node, new Issued(start, before), issued));
        }
        join(stream, issued.values());
    }

    private Issued issue(GraphNode node, Issued start, Map<GraphNode, Issued> issued) {
        StreamQueue lane = java.util.Objects.requireNonNull(laneOf.get(node));
        List<Work> waits = new ArrayList<>();
        start.addTo(lane, waits);
        node.dependencies().forEach(each -> {
            Issued earlier = java.util.Objects.requireNonNull(issued.get(each));
            earlier.addTo(lane, waits);
        });
        machine.engine.add(lane, Work.waitingFor(waits));
        node.work().to(lane);
        return new Issued(java.util.Objects.requireNonNull(lane.tail()), through(lane));
    }

    private void join(StreamQueue stream, Iterable<Issued> all) {
        List<Work> waits = new ArrayList<>();
        all.forEach(each -> each.addTo(stream, waits));
        last = Work.waitingFor(waits);
        machine.streams.enqueue(stream, last);
        lastClock = through(stream);
    }

    private static StreamClock through(StreamQueue stream) {
        StreamClock clock = stream.clock().copy();
        clock.include(stream, stream.issued());
        return clock;
    }

    /// Work in a queue, and the clock of all that happened before its end.
    private record Issued(Work work, StreamClock clock) {
        void addTo(StreamQueue follower, List<Work> waits) {
            waits.add(work);
            follower.clock().include(clock);
        }
    }
}
