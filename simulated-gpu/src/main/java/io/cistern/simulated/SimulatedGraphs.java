package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.Streams;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/// [Graphs] over the model.
final class SimulatedGraphs implements Graphs {
    private final Machine machine;

    SimulatedGraphs(Machine machine) {
        this.machine = machine;
    }

    @Override
    public void beginCapture(int device, long stream, CaptureMode mode) {
        DriverCall call = DriverCall.STREAM_BEGIN_CAPTURE;
        machine.run(call, device, "stream", stream, () -> {
            failIf(stream == 0 || stream == Streams.LEGACY_DEFAULT, CudaResult.STREAM_CAPTURE_UNSUPPORTED);
            StreamQueue queue = machine.streams.find(call, device, stream);
            failIf(machine.captures.of(queue) != null, CudaResult.ILLEGAL_STATE);
            Graph graph = new Graph(device, machine.graphMemory(device), machine.handles);
            long handle = machine.handles.register(graph);
            Capture capture = new Capture(machine.captures.nextId(), queue, mode, graph, handle);
            machine.captures.add(capture);
        });
    }

    @Override
    public long endCapture(int device, long stream) {
        return machine.callOnStream(DriverCall.STREAM_END_CAPTURE, device, stream, queue -> {
            Capture capture = machine.captures.of(queue);
            if (capture == null) {
                throw new DriverFailure(CudaResult.ILLEGAL_STATE);
            }
            failIf(
                    capture.mode != CaptureMode.RELAXED && !capture.owner.equals(Thread.currentThread()),
                    CudaResult.STREAM_CAPTURE_WRONG_THREAD);
            if (capture.origin != queue) {
                capture.invalidate();
                throw new DriverFailure(CudaResult.STREAM_CAPTURE_UNMATCHED);
            }
            machine.captures.remove(capture);
            if (capture.invalidated || !capture.isJoined()) {
                machine.handles.forget(capture.graphHandle);
                drop(capture.graph);
                throw new DriverFailure(
                        capture.invalidated
                                ? CudaResult.STREAM_CAPTURE_INVALIDATED
                                : CudaResult.STREAM_CAPTURE_UNJOINED);
            }
            return capture.graphHandle;
        });
    }

    /// Returns a stream whose capture is to be reported, unless the driver refuses to report it.
    private StreamQueue asked(DriverCall call, int device, long stream) {
        StreamQueue queue = machine.streams.find(call, device, stream);
        machine.captures.refuseToTell(queue, machine.device(device).legacy);
        return queue;
    }

    @Override
    public CaptureStatus captureStatus(int device, long stream) {
        DriverCall call = DriverCall.STREAM_IS_CAPTURING;
        return machine.call(call, device, "stream", stream, () -> {
            Capture capture = machine.captures.of(asked(call, device, stream));
            if (capture == null) {
                return CaptureStatus.NONE;
            }
            return capture.invalidated ? CaptureStatus.INVALIDATED : CaptureStatus.ACTIVE;
        });
    }

    @Override
    public long captureId(int device, long stream) {
        return ofCapture(device, stream, 0L, (capture, _) -> capture.id);
    }

    /// Queries a stream's running capture; returns `otherwise` if there is none.
    private <T> T ofCapture(int device, long stream, T otherwise, BiFunction<Capture, StreamQueue, T> answer) {
        DriverCall call = DriverCall.STREAM_GET_CAPTURE_INFO;
        return machine.call(call, device, "stream", stream, () -> {
            StreamQueue queue = asked(call, device, stream);
            Capture capture = machine.captures.of(queue);
            return capture == null || capture.invalidated ? otherwise : answer.apply(capture, queue);
        });
    }

    @Override
    public long capturingGraph(int device, long stream) {
        return ofCapture(device, stream, 0L, (capture, _) -> capture.graphHandle);
    }

    @Override
    public List<Long> captureDependencies(int device, long stream) {
        return ofCapture(device, stream, List.of(), (capture, queue) -> handles(capture.ends(queue)));
    }

    private static List<Long> handles(List<GraphNode> nodes) {
        return nodes.stream().map(GraphNode::handle).toList();
    }

    @Override
    public CaptureMode exchangeThreadMode(CaptureMode mode) {
        DriverCall call = DriverCall.THREAD_EXCHANGE_CAPTURE_MODE;
        return machine.call(call, 0, mode::toString, () -> machine.captures.exchangeMode(mode));
    }

    @Override
    public void shelter(int device) {
        machine.locked(() -> machine.captures.shelter(device, 1));
    }

    @Override
    public void unshelter(int device) {
        machine.locked(() -> machine.captures.shelter(device, -1));
    }

    @Override
    public boolean isSheltered(int device) {
        return machine.captures.isSheltered(device);
    }

    @Override
    public boolean unlessSheltered(int device, BooleanSupplier call) {
        return machine.locked(() -> !isSheltered(device) && call.getAsBoolean());
    }

    @Override
    public long create(int device) {
        return machine.call(
                DriverCall.GRAPH_CREATE,
                device,
                () -> machine.handles.register(new Graph(device, machine.graphMemory(device), machine.handles)));
    }

    @Override
    public AllocationNode addAllocation(int device, long graph, List<Long> dependencies, long byteSize) {
        DriverCall call = DriverCall.GRAPH_ADD_MEM_ALLOC_NODE;
        return onGraph(call, device, graph, found -> {
            require(byteSize > 0);
            GraphNode node = found.allocate(nodes(call, device, dependencies), byteSize);
            return new AllocationNode(node.handle(), found.latest().address);
        });
    }

    @Override
    public long addFree(int device, long graph, List<Long> dependencies, long address) {
        DriverCall call = DriverCall.GRAPH_ADD_MEM_FREE_NODE;
        return onGraph(
                call,
                device,
                graph,
                found -> found.free(nodes(call, device, dependencies), address).handle());
    }

    @Override
    public long addFill(int device, long graph, List<Long> dependencies, long target, int value, long count) {
        DriverCall call = DriverCall.GRAPH_ADD_MEMSET_NODE;
        return addWork(
                call,
                device,
                graph,
                dependencies,
                "fill",
                stream -> SimulatedCopies.fill(machine, call, stream, target, value, 4 * count));
    }

    @Override
    public long addEmpty(int device, long graph, List<Long> dependencies) {
        return addWork(DriverCall.GRAPH_ADD_EMPTY_NODE, device, graph, dependencies, "empty", stream -> {
            machine.streams.enqueue(stream, Work.marker());
        });
    }

    private long addWork(
            DriverCall call, int device, long graph, List<Long> dependencies, String kind, GraphNode.Issue work) {
        return onGraph(
                call,
                device,
                graph,
                found ->
                        found.add(kind, nodes(call, device, dependencies), work).handle());
    }

    @Override
    public long nodeCount(int device, long graph) {
        return onGraph(DriverCall.GRAPH_GET_NODES, device, graph, found -> (long) found.nodes.size());
    }

    @Override
    public List<Long> dependencies(int device, long node) {
        DriverCall call = DriverCall.GRAPH_NODE_GET_DEPENDENCIES;
        return machine.call(
                call,
                device,
                "node",
                node,
                () -> handles(node(call, device, node).dependencies()));
    }

    @Override
    public void retain(int device, long graph, Runnable whenGone) {
        boolean _ = onGraph(DriverCall.GRAPH_RETAIN_USER_OBJECT, device, graph, found -> found.retained.add(whenGone));
    }

    @Override
    public long instantiate(int device, long graph, boolean freesOnLaunch) {
        return onGraph(DriverCall.GRAPH_INSTANTIATE, device, graph, found -> {
            found.instantiated();
            return machine.handles.register(new ExecutableGraph(machine, found, freesOnLaunch));
        });
    }

    @Override
    public void update(int device, long executable, long graph) {
        DriverCall call = DriverCall.GRAPH_EXEC_UPDATE;
        machine.run(
                call,
                device,
                "executable",
                executable,
                () -> executable(call, device, executable).update(graph(call, device, graph)));
    }

    @Override
    public void launch(int device, long executable, long stream) {
        DriverCall call = DriverCall.GRAPH_LAUNCH;
        machine.run(
                call,
                device,
                () -> "device=" + device + ", executable=0x" + Long.toHexString(executable) + ", stream=0x"
                        + Long.toHexString(stream),
                () -> {
                    StreamQueue queue = machine.streams.find(call, device, stream);
                    machine.captures.refuseCaptured(queue);
                    executable(call, device, executable).launch(queue);
                });
    }

    @Override
    public void destroyExecutable(int device, long executable) {
        DriverCall call = DriverCall.GRAPH_EXEC_DESTROY;
        machine.run(call, device, "executable", executable, () -> {
            ExecutableGraph found = executable(call, device, executable);
            machine.handles.forget(executable);
            found.graph.executableGone(found.last, found.lastClock);
            drop(found.graph);
        });
    }

    @Override
    public void destroy(int device, long graph) {
        DriverCall call = DriverCall.GRAPH_DESTROY;
        machine.run(call, device, "graph", graph, () -> {
            Graph found = graph(call, device, graph);
            machine.handles.forget(graph);
            drop(found);
        });
    }

    /// Drops a reference to a graph. If none is left, its memory is released and the retained code runs,
    /// both after the launches have ended.
    private void drop(Graph graph) {
        if (!graph.release()) {
            return;
        }
        StreamQueue after = machine.streams.unnamed(graph.device);
        machine.engine.add(after, graph.end());
        if (!graph.retained.isEmpty()) { // host code, whose execution shows that the launches have ended
            machine.engine.add(after, Work.of(0, () -> machine.hostSaw(graph.launched)));
        }
        for (Runnable whenGone : graph.retained) {
            machine.engine.add(after, Work.gated(machine.callbacks.gateFor(whenGone)));
            machine.callbacks.start();
        }
        machine.engine.runUntilNow();
    }

    @Override
    public long memory(int device, GraphMemoryAttribute attribute) {
        return machine.call(
                DriverCall.DEVICE_GET_GRAPH_MEM_ATTRIBUTE,
                device,
                attribute::toString,
                () -> machine.graphMemory(device).attribute(attribute));
    }

    @Override
    public void resetMemory(int device, GraphMemoryAttribute attribute) {
        machine.run(
                DriverCall.DEVICE_SET_GRAPH_MEM_ATTRIBUTE,
                device,
                attribute::toString,
                () -> machine.graphMemory(device).reset(attribute));
    }

    @Override
    public void trimMemory(int device) {
        machine.run(
                DriverCall.DEVICE_GRAPH_MEM_TRIM,
                device,
                () -> machine.graphMemory(device).trim());
    }

    private <T> T onGraph(DriverCall call, int device, long graph, Function<Graph, T> work) {
        return machine.call(call, device, "graph", graph, () -> work.apply(graph(call, device, graph)));
    }

    private Graph graph(DriverCall call, int device, long handle) {
        return machine.handles.find(Graph.class, handle, CudaResult.INVALID_VALUE, call, device);
    }

    private ExecutableGraph executable(DriverCall call, int device, long handle) {
        return machine.handles.find(ExecutableGraph.class, handle, CudaResult.INVALID_VALUE, call, device);
    }

    private List<GraphNode> nodes(DriverCall call, int device, List<Long> found) {
        return found.stream().map(handle -> node(call, device, handle)).toList();
    }

    private GraphNode node(DriverCall call, int device, long handle) {
        return machine.handles.find(GraphNode.class, handle, CudaResult.INVALID_VALUE, call, device);
    }
}
