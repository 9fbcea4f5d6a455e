package io.cistern.cuda.ffm;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Graphs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/// Graphs and captures of the real driver.
final class NativeGraphs extends NativeFacet implements Graphs {
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
    static final long AUTO_FREE_ON_LAUNCH = 1;

    /// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`
    static final int NO_DESTRUCTOR_SYNC = 1;

    /// `CU_GRAPH_USER_OBJECT_MOVE`
    static final int MOVE = 1;

    /// Bytes of a `CUgraphExecUpdateResultInfo`.
    static final long UPDATE_RESULT_BYTES = 24;

    private final DriverFunction begin = bind(DriverCall.STREAM_BEGIN_CAPTURE, "LI");
    private final DriverFunction end = bind(DriverCall.STREAM_END_CAPTURE, "LL");
    private final DriverFunction isCapturing = bind(DriverCall.STREAM_IS_CAPTURING, "LL");
    private final DriverFunction info = bind(DriverCall.STREAM_GET_CAPTURE_INFO, "LLLLLLL");
    private final DriverFunction exchangeMode = bind(DriverCall.THREAD_EXCHANGE_CAPTURE_MODE, "L");
    private final DriverFunction create = bind(DriverCall.GRAPH_CREATE, "LI");
    private final DriverFunction addAllocation = bind(DriverCall.GRAPH_ADD_MEM_ALLOC_NODE, "LLLLL");
    private final DriverFunction addFree = bind(DriverCall.GRAPH_ADD_MEM_FREE_NODE, "LLLLL");
    private final DriverFunction addFill = bind(DriverCall.GRAPH_ADD_MEMSET_NODE, "LLLLLL");
    private final DriverFunction addEmpty = bind(DriverCall.GRAPH_ADD_EMPTY_NODE, "LLLL");
    private final DriverFunction getNodes = bind(DriverCall.GRAPH_GET_NODES, "LLL");
    private final DriverFunction getDependencies = bind(DriverCall.GRAPH_NODE_GET_DEPENDENCIES, "LLLL");
    private final DriverFunction createObject = bind(DriverCall.USER_OBJECT_CREATE, "LLLII");
    private final DriverFunction releaseObject = bind(DriverCall.USER_OBJECT_RELEASE, "LI");
    private final DriverFunction retainObject = bind(DriverCall.GRAPH_RETAIN_USER_OBJECT, "LLII");
    private final DriverFunction instantiate = bind(DriverCall.GRAPH_INSTANTIATE, "LLL");
    private final DriverFunction update = bind(DriverCall.GRAPH_EXEC_UPDATE, "LLL");
    private final DriverFunction launch = bind(DriverCall.GRAPH_LAUNCH, "LL");
    private final DriverFunction destroyExecutable = bind(DriverCall.GRAPH_EXEC_DESTROY, "L");
    private final DriverFunction destroy = bind(DriverCall.GRAPH_DESTROY, "L");
    private final DriverFunction getMemory = bind(DriverCall.DEVICE_GET_GRAPH_MEM_ATTRIBUTE, "IIL");
    private final DriverFunction setMemory = bind(DriverCall.DEVICE_SET_GRAPH_MEM_ATTRIBUTE, "IIL");
    private final DriverFunction trimMemory = bind(DriverCall.DEVICE_GRAPH_MEM_TRIM, "I");

    NativeGraphs(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public void beginCapture(int device, long stream, CaptureMode mode) {
        run(begin, device, "device, stream, mode", stream, mode.code());
    }

    @Override
    public long endCapture(int device, long stream) {
        return askAbout(end, device, "device, stream", stream);
    }

    @Override
    public CaptureStatus captureStatus(int device, long stream) {
        return CaptureStatus.of((int) askAbout(isCapturing, device, "device, stream", stream));
    }

    /// Called for each allocation during a capture. So if the stream names its context, this calls the
    /// driver without checking the context or the thread's mode.
    @Override
    public long captureId(int device, long stream) {
        if (contexts.isNamedInCaptures(stream, device)) {
            try (Frame frame = Frame.acquire()) {
                if (askId(frame, stream) == 0) {
                    return isActive(frame) ? frame.secondOutLong() : 0;
                }
            }
        }
        try (Frame frame = contexts.enter(info, device)) {
            info.check(askId(frame, stream), "device, stream", device, stream);
            return isActive(frame) ? frame.secondOutLong() : 0;
        }
    }

    private int askId(Frame frame, long stream) {
        return info.call(frame, stream, frame.zeroedOut(), frame.secondOut(), 0L, 0L, 0L, 0L);
    }

    /// Returns the graph as [#capturingGraph] does, but 0 if the driver can't answer: the following call then
    /// reports the failure itself, if it is one.
    long capturingGraphIfAny(int device, long stream) {
        if (!info.present()) {
            return 0;
        }
        try (Frame frame = contexts.enter(info, device)) {
            int code = info.call(frame, stream, frame.zeroedOut(), 0L, frame.secondOut(), 0L, 0L, 0L);
            return code == 0 && isActive(frame) ? frame.secondOutLong() : 0;
        }
    }

    @Override
    public long capturingGraph(int device, long stream) {
        try (Frame frame = contexts.enter(info, device)) {
            int code = info.call(frame, stream, frame.zeroedOut(), 0L, frame.secondOut(), 0L, 0L, 0L);
            info.check(code, "device, stream", device, stream);
            return isActive(frame) ? frame.secondOutLong() : 0;
        }
    }

    private static boolean isActive(Frame frame) {
        return frame.outInt() == CaptureStatus.ACTIVE.code();
    }

    @Override
    public List<Long> captureDependencies(int device, long stream) {
        try (Frame frame = contexts.enter(info, device)) {
            MemorySegment outs = frame.struct();
            long edges = outs.address() + 16;
            int code = info.call(frame, stream, frame.zeroedOut(), 0L, 0L, outs.address(), edges, frame.secondOut());
            info.check(code, "device, stream", device, stream);
            return isActive(frame) ? longs(outs.get(ValueLayout.JAVA_LONG, 0), frame.secondOutLong()) : List.of();
        }
    }

    @SuppressWarnings("restricted")
    private static List<Long> longs(long address, long count) {
        MemorySegment nodes = MemorySegment.ofAddress(address).reinterpret(count * Long.BYTES);
        List<Long> all = new ArrayList<>();
        for (long i = 0; i < count; i++) {
            all.add(nodes.getAtIndex(ValueLayout.JAVA_LONG, i));
        }
        return all;
    }

    /// The mode belongs to the OS thread, so no context is needed.
    @Override
    public CaptureMode exchangeThreadMode(CaptureMode mode) {
        try (Frame frame = Frame.acquire()) {
            frame.setOut(mode.code());
            exchangeMode.check(exchangeMode.call(frame, frame.out()), "mode", mode.code());
            return CaptureMode.of(frame.outInt());
        }
    }

    @Override
    public void shelter(int device) {
        contexts.handle(begin, device);
        contexts.shelter().change(device, 1);
    }

    @Override
    public void unshelter(int device) {
        contexts.handle(end, device);
        contexts.shelter().change(device, -1);
    }

    @Override
    public boolean isSheltered(int device) {
        return contexts.shelter().isOn(device);
    }

    @Override
    public boolean unlessSheltered(int device, BooleanSupplier call) {
        return contexts.shelter().unlessOn(device, call);
    }

    @Override
    public long create(int device) {
        return ask(create, device, "device", 0);
    }

    @Override
    public AllocationNode addAllocation(int device, long graph, List<Long> dependencies, long byteSize) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(addAllocation, device)) {
            long nodes = array(arena, dependencies);
            MemorySegment parameters = Structs.allocationNode(arena, device, byteSize);
            int code = addAllocation.call(
                    frame, frame.out(), graph, nodes, (long) dependencies.size(), parameters.address());
            addAllocation.check(code, "device, graph, byteSize", device, graph, byteSize);
            return new AllocationNode(frame.outLong(), Structs.allocatedAddress(parameters));
        }
    }

    @Override
    public long addFree(int device, long graph, List<Long> dependencies, long address) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(addFree, device)) {
            long nodes = array(arena, dependencies);
            int code = addFree.call(frame, frame.out(), graph, nodes, (long) dependencies.size(), address);
            addFree.check(code, "device, graph, address", device, graph, address);
            return frame.outLong();
        }
    }

    @Override
    public long addFill(int device, long graph, List<Long> dependencies, long target, int value, long count) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(addFill, device)) {
            long nodes = array(arena, dependencies);
            long parameters = Structs.fillNode(arena, target, value, count).address();
            long context = contexts.primary(addFill, device);
            int code = addFill.call(frame, frame.out(), graph, nodes, (long) dependencies.size(), parameters, context);
            addFill.check(code, "device, graph, target, count", device, graph, target, count);
            return frame.outLong();
        }
    }

    @Override
    public long addEmpty(int device, long graph, List<Long> dependencies) {
        try (Arena arena = Arena.ofConfined()) {
            long nodes = array(arena, dependencies);
            return ask(addEmpty, device, "device, graph", graph, nodes, (long) dependencies.size());
        }
    }

    private static long array(Arena arena, List<Long> handles) {
        return handles.isEmpty()
                ? 0
                : arena.allocateFrom(
                                ValueLayout.JAVA_LONG,
                                handles.stream().mapToLong(Long::longValue).toArray())
                        .address();
    }

    @Override
    public long nodeCount(int device, long graph) {
        try (Frame frame = contexts.enter(getNodes, device)) {
            getNodes.check(getNodes.call(frame, graph, 0L, frame.zeroedOut()), "device, graph", device, graph);
            return frame.outLong();
        }
    }

    @Override
    public List<Long> dependencies(int device, long node) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(getDependencies, device)) {
            int code = getDependencies.call(frame, node, 0L, 0L, frame.zeroedOut());
            getDependencies.check(code, "device, node", device, node);
            long count = frame.outLong();
            if (count == 0) {
                return List.of();
            }
            long nodes = arena.allocate(ValueLayout.JAVA_LONG, count).address();
            long edges = arena.allocate(ValueLayout.JAVA_LONG, count).address();
            code = getDependencies.call(frame, node, nodes, edges, frame.out());
            getDependencies.check(code, "device, node", device, node);
            return longs(nodes, count);
        }
    }

    @Override
    public void retain(int device, long graph, Runnable whenGone) {
        long entryPoint = HostFunctions.ENTRY_POINT;
        long key = HostFunctions.keep(whenGone);
        boolean retained = false;
        try (Frame frame = contexts.enter(createObject, device)) {
            int code = createObject.call(frame, frame.out(), key, entryPoint, 1, NO_DESTRUCTOR_SYNC);
            createObject.check(code, "device", device);
            long object = frame.outLong();
            code = retainObject.call(frame, graph, object, 1, MOVE);
            if (code != CudaResult.SUCCESS.code()) {
                HostFunctions.forget(key); // before the object's destructor would run it
                releaseObject.call(frame, object, 1);
            }
            retainObject.check(code, "device, graph", device, graph);
            retained = true;
        } finally {
            if (!retained) {
                HostFunctions.forget(key);
            }
        }
    }

    @Override
    public long instantiate(int device, long graph, boolean freesOnLaunch) {
        long flags = freesOnLaunch ? AUTO_FREE_ON_LAUNCH : 0;
        return ask(instantiate, device, "device, graph, flags", graph, flags);
    }

    @Override
    public void update(int device, long executable, long graph) {
        try (Frame frame = contexts.enter(update, device)) {
            MemorySegment result = frame.struct();
            int code = update.call(frame, executable, graph, result.address());
            update.check(
                    code,
                    "device, executable, graph, updateResult",
                    device,
                    executable,
                    graph,
                    result.get(ValueLayout.JAVA_INT, 0));
        }
    }

    @Override
    public void launch(int device, long executable, long stream) {
        run(launch, device, "device, executable, stream", executable, stream);
    }

    @Override
    public void destroyExecutable(int device, long executable) {
        run(destroyExecutable, device, "device, executable", executable);
    }

    @Override
    public void destroy(int device, long graph) {
        run(destroy, device, "device, graph", graph);
    }

    @Override
    public long memory(int device, GraphMemoryAttribute attribute) {
        int handle = contexts.handle(getMemory, device);
        try (Frame frame = contexts.enter(getMemory, device)) {
            int code = getMemory.call(frame, handle, attribute.code(), frame.zeroedOut());
            getMemory.check(code, "device, attribute", device, attribute.code());
            return frame.outLong();
        }
    }

    @Override
    public void resetMemory(int device, GraphMemoryAttribute attribute) {
        int handle = contexts.handle(setMemory, device);
        try (Frame frame = contexts.enter(setMemory, device)) {
            int code = setMemory.call(frame, handle, attribute.code(), frame.zeroedOut());
            setMemory.check(code, "device, attribute", device, attribute.code());
        }
    }

    @Override
    public void trimMemory(int device) {
        int handle = contexts.handle(trimMemory, device);
        run(trimMemory, device, "device", handle);
    }
}
