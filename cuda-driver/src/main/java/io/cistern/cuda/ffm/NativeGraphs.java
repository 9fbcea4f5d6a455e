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
final class NativeGraphs implements Graphs {
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
    static final long AUTO_FREE_ON_LAUNCH = 1;

    /// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`
    static final int NO_DESTRUCTOR_SYNC = 1;

    /// `CU_GRAPH_USER_OBJECT_MOVE`
    static final int MOVE = 1;

    /// Bytes of a `CUgraphExecUpdateResultInfo`.
    static final long UPDATE_RESULT_BYTES = 24;

    private final Contexts contexts;
    private final DriverFunction begin;
    private final DriverFunction end;
    private final DriverFunction isCapturing;
    private final DriverFunction info;
    private final DriverFunction exchangeMode;
    private final DriverFunction create;
    private final DriverFunction addAllocation;
    private final DriverFunction addFree;
    private final DriverFunction addFill;
    private final DriverFunction addEmpty;
    private final DriverFunction getNodes;
    private final DriverFunction getDependencies;
    private final DriverFunction createObject;
    private final DriverFunction releaseObject;
    private final DriverFunction retainObject;
    private final DriverFunction instantiate;
    private final DriverFunction update;
    private final DriverFunction launch;
    private final DriverFunction destroyExecutable;
    private final DriverFunction destroy;
    private final DriverFunction getMemory;
    private final DriverFunction setMemory;
    private final DriverFunction trimMemory;

    NativeGraphs(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        begin = library.function(DriverCall.STREAM_BEGIN_CAPTURE, "LI");
        end = library.function(DriverCall.STREAM_END_CAPTURE, "LL");
        isCapturing = library.function(DriverCall.STREAM_IS_CAPTURING, "LL");
        info = library.function(DriverCall.STREAM_GET_CAPTURE_INFO, "LLLLLLL");
        exchangeMode = library.function(DriverCall.THREAD_EXCHANGE_CAPTURE_MODE, "L");
        create = library.function(DriverCall.GRAPH_CREATE, "LI");
        addAllocation = library.function(DriverCall.GRAPH_ADD_MEM_ALLOC_NODE, "LLLLL");
        addFree = library.function(DriverCall.GRAPH_ADD_MEM_FREE_NODE, "LLLLL");
        addFill = library.function(DriverCall.GRAPH_ADD_MEMSET_NODE, "LLLLLL");
        addEmpty = library.function(DriverCall.GRAPH_ADD_EMPTY_NODE, "LLLL");
        getNodes = library.function(DriverCall.GRAPH_GET_NODES, "LLL");
        getDependencies = library.function(DriverCall.GRAPH_NODE_GET_DEPENDENCIES, "LLLL");
        createObject = library.function(DriverCall.USER_OBJECT_CREATE, "LLLII");
        releaseObject = library.function(DriverCall.USER_OBJECT_RELEASE, "LI");
        retainObject = library.function(DriverCall.GRAPH_RETAIN_USER_OBJECT, "LLII");
        instantiate = library.function(DriverCall.GRAPH_INSTANTIATE, "LLL");
        update = library.function(DriverCall.GRAPH_EXEC_UPDATE, "LLL");
        launch = library.function(DriverCall.GRAPH_LAUNCH, "LL");
        destroyExecutable = library.function(DriverCall.GRAPH_EXEC_DESTROY, "L");
        destroy = library.function(DriverCall.GRAPH_DESTROY, "L");
        getMemory = library.function(DriverCall.DEVICE_GET_GRAPH_MEM_ATTRIBUTE, "IIL");
        setMemory = library.function(DriverCall.DEVICE_SET_GRAPH_MEM_ATTRIBUTE, "IIL");
        trimMemory = library.function(DriverCall.DEVICE_GRAPH_MEM_TRIM, "I");
    }

    @Override
    public void beginCapture(int device, long stream, CaptureMode mode) {
        try (Frame _ = contexts.enter(begin, device)) {
            begin.check(begin.call(stream, mode.code()), "device, stream, mode", device, stream, mode.code());
        }
    }

    @Override
    public long endCapture(int device, long stream) {
        try (Frame frame = contexts.enter(end, device)) {
            end.check(end.call(stream, frame.zeroedOut()), "device, stream", device, stream);
            return frame.outLong();
        }
    }

    @Override
    public CaptureStatus captureStatus(int device, long stream) {
        try (Frame frame = contexts.enter(isCapturing, device)) {
            isCapturing.check(isCapturing.call(stream, frame.zeroedOut()), "device, stream", device, stream);
            return CaptureStatus.of(frame.outInt());
        }
    }

    /// Called for each allocation during a capture. So if the stream names its context, the driver is asked at
    /// once, without a check of the context or the thread's mode.
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
            int code = info.call(stream, frame.zeroedOut(), 0L, frame.secondOut(), 0L, 0L, 0L);
            return code == 0 && isActive(frame) ? frame.secondOutLong() : 0;
        }
    }

    @Override
    public long capturingGraph(int device, long stream) {
        try (Frame frame = contexts.enter(info, device)) {
            int code = info.call(stream, frame.zeroedOut(), 0L, frame.secondOut(), 0L, 0L, 0L);
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
            int code = info.call(stream, frame.zeroedOut(), 0L, 0L, outs.address(), edges, frame.secondOut());
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
            exchangeMode.check(exchangeMode.call(frame.out()), "mode", mode.code());
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
        try (Frame frame = contexts.enter(create, device)) {
            create.check(create.call(frame.out(), 0), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public AllocationNode addAllocation(int device, long graph, List<Long> dependencies, long byteSize) {
        try (Arena arena = Arena.ofConfined()) {
            long nodes = array(arena, dependencies);
            MemorySegment parameters = Structs.allocationNode(arena, device, byteSize);
            try (Frame frame = contexts.enter(addAllocation, device)) {
                int code =
                        addAllocation.call(frame.out(), graph, nodes, (long) dependencies.size(), parameters.address());
                addAllocation.check(code, "device, graph, byteSize", device, graph, byteSize);
                return new AllocationNode(frame.outLong(), Structs.allocatedAddress(parameters));
            }
        }
    }

    @Override
    public long addFree(int device, long graph, List<Long> dependencies, long address) {
        try (Arena arena = Arena.ofConfined()) {
            long nodes = array(arena, dependencies);
            try (Frame frame = contexts.enter(addFree, device)) {
                int code = addFree.call(frame.out(), graph, nodes, (long) dependencies.size(), address);
                addFree.check(code, "device, graph, address", device, graph, address);
                return frame.outLong();
            }
        }
    }

    @Override
    public long addFill(int device, long graph, List<Long> dependencies, long target, int value, long count) {
        try (Arena arena = Arena.ofConfined()) {
            long nodes = array(arena, dependencies);
            long parameters = Structs.fillNode(arena, target, value, count).address();
            long context = contexts.primary(addFill, device);
            try (Frame frame = contexts.enter(addFill, device)) {
                int code = addFill.call(frame.out(), graph, nodes, (long) dependencies.size(), parameters, context);
                addFill.check(code, "device, graph, target, count", device, graph, target, count);
                return frame.outLong();
            }
        }
    }

    @Override
    public long addEmpty(int device, long graph, List<Long> dependencies) {
        try (Arena arena = Arena.ofConfined()) {
            long nodes = array(arena, dependencies);
            try (Frame frame = contexts.enter(addEmpty, device)) {
                int code = addEmpty.call(frame.out(), graph, nodes, (long) dependencies.size());
                addEmpty.check(code, "device, graph", device, graph);
                return frame.outLong();
            }
        }
    }

    /// Returns the address of an array of handles; 0 if there are none.
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
            getNodes.check(getNodes.call(graph, 0L, frame.zeroedOut()), "device, graph", device, graph);
            return frame.outLong();
        }
    }

    @Override
    public List<Long> dependencies(int device, long node) {
        try (Arena arena = Arena.ofConfined();
                Frame frame = contexts.enter(getDependencies, device)) {
            int code = getDependencies.call(node, 0L, 0L, frame.zeroedOut());
            getDependencies.check(code, "device, node", device, node);
            long count = frame.outLong();
            if (count == 0) {
                return List.of();
            }
            long nodes = arena.allocate(ValueLayout.JAVA_LONG, count).address();
            long edges = arena.allocate(ValueLayout.JAVA_LONG, count).address();
            code = getDependencies.call(node, nodes, edges, frame.out());
            getDependencies.check(code, "device, node", device, node);
            return longs(nodes, count);
        }
    }

    @Override
    public void retain(int device, long graph, Runnable whenGone) {
        long entryPoint = HostFunctions.entryPoint();
        long key = HostFunctions.keep(whenGone);
        boolean retained = false;
        try (Frame frame = contexts.enter(createObject, device)) {
            int code = createObject.call(frame.out(), key, entryPoint, 1, NO_DESTRUCTOR_SYNC);
            createObject.check(code, "device", device);
            long object = frame.outLong();
            code = retainObject.call(graph, object, 1, MOVE);
            if (code != CudaResult.SUCCESS.code()) {
                HostFunctions.forget(key); // before the object's destructor would run it
                releaseObject.call(object, 1);
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
        try (Frame frame = contexts.enter(instantiate, device)) {
            instantiate.check(
                    instantiate.call(frame.out(), graph, flags), "device, graph, flags", device, graph, flags);
            return frame.outLong();
        }
    }

    @Override
    public void update(int device, long executable, long graph) {
        try (Frame frame = contexts.enter(update, device)) {
            MemorySegment result = frame.struct();
            int code = update.call(executable, graph, result.address());
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
        try (Frame _ = contexts.enter(launch, device)) {
            launch.check(launch.call(executable, stream), "device, executable, stream", device, executable, stream);
        }
    }

    @Override
    public void destroyExecutable(int device, long executable) {
        try (Frame _ = contexts.enter(destroyExecutable, device)) {
            destroyExecutable.check(destroyExecutable.call(executable), "device, executable", device, executable);
        }
    }

    @Override
    public void destroy(int device, long graph) {
        try (Frame _ = contexts.enter(destroy, device)) {
            destroy.check(destroy.call(graph), "device, graph", device, graph);
        }
    }

    @Override
    public long memory(int device, GraphMemoryAttribute attribute) {
        int handle = contexts.handle(getMemory, device);
        try (Frame frame = contexts.enter(getMemory, device)) {
            int code = getMemory.call(handle, attribute.code(), frame.zeroedOut());
            getMemory.check(code, "device, attribute", device, attribute.code());
            return frame.outLong();
        }
    }

    @Override
    public void resetMemory(int device, GraphMemoryAttribute attribute) {
        int handle = contexts.handle(setMemory, device);
        try (Frame frame = contexts.enter(setMemory, device)) {
            int code = setMemory.call(handle, attribute.code(), frame.zeroedOut());
            setMemory.check(code, "device, attribute", device, attribute.code());
        }
    }

    @Override
    public void trimMemory(int device) {
        int handle = contexts.handle(trimMemory, device);
        try (Frame _ = contexts.enter(trimMemory, device)) {
            trimMemory.check(trimMemory.call(handle), "device", device);
        }
    }
}
