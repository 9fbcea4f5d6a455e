package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;

/// Streams and host functions of the real driver.
final class NativeStreams extends NativeFacet implements Streams {
    private static final int BLOCKING = 0;

    /// `CU_STREAM_NON_BLOCKING`
    static final int NON_BLOCKING = 1;

    private final DriverFunction create = bind(DriverCall.STREAM_CREATE, "LI");
    private final DriverFunction createWithPriority = bind(DriverCall.STREAM_CREATE_WITH_PRIORITY, "LII");
    private final DriverFunction destroy = bind(DriverCall.STREAM_DESTROY, "L");
    private final DriverFunction synchronize = bind(DriverCall.STREAM_SYNCHRONIZE, "L");
    private final DriverFunction query = bind(DriverCall.STREAM_QUERY, "L");
    private final DriverFunction waitEvent = bind(DriverCall.STREAM_WAIT_EVENT, "LLI");
    private final DriverFunction getId = bind(DriverCall.STREAM_GET_ID, "LL");
    private final DriverFunction getFlags = bind(DriverCall.STREAM_GET_FLAGS, "LL");
    private final DriverFunction launchHost = bind(DriverCall.LAUNCH_HOST_FUNC, "LLL");
    private final NativeGraphs graphs;

    NativeStreams(DriverLibrary library, Contexts contexts, NativeGraphs graphs) {
        super(library, contexts);
        this.graphs = graphs;
    }

    @Override
    public long create(int device) {
        return ask(create, device, "device", NON_BLOCKING);
    }

    @Override
    public long create(int device, boolean nonBlocking, int priority) {
        int flags = nonBlocking ? NON_BLOCKING : BLOCKING;
        return ask(createWithPriority, device, "device, flags, priority", flags, priority);
    }

    @Override
    public void destroy(int device, long stream) {
        run(destroy, device, "device, stream", stream);
    }

    @Override
    public void synchronize(int device, long stream) {
        if (stream == PER_THREAD_DEFAULT) {
            // On another thread this handle would mean another stream.
            synchronizeHere(device, stream);
        } else {
            BlockingCalls.run(() -> synchronizeHere(device, stream));
        }
    }

    private void synchronizeHere(int device, long stream) {
        run(synchronize, device, "device, stream", stream);
    }

    @Override
    public boolean isIdle(int device, long stream) {
        try (Frame frame = contexts.enter(query, device)) {
            int code = query.call(frame, stream);
            if (code == CudaResult.NOT_READY.code()) {
                return false;
            }
            query.check(code, "device, stream", device, stream);
            return true;
        }
    }

    @Override
    public boolean isBlocking(int device, long stream) {
        return (askAbout(getFlags, device, "device, stream", stream) & NON_BLOCKING) == 0;
    }

    @Override
    public void await(int device, long stream, long event) {
        run(waitEvent, device, "device, stream, event", stream, event, 0);
    }

    @Override
    public long id(int device, long stream) {
        return askAbout(getId, device, "device, stream", stream);
    }

    @Override
    public void launchHostFunction(int device, long stream, Runnable function) {
        long graph = graphs.capturingGraphIfAny(device, stream);
        long entryPoint = graph == 0 ? HostFunctions.ENTRY_POINT : HostFunctions.REPEATING_ENTRY_POINT;
        long key = HostFunctions.keep(function);
        boolean launched = false;
        try (Frame frame = contexts.enter(launchHost, device)) {
            launchHost.check(launchHost.call(frame, stream, entryPoint, key), "device, stream", device, stream);
            launched = true;
        } finally {
            if (!launched) {
                HostFunctions.forget(key);
            }
        }
        if (graph != 0) {
            graphs.retain(device, graph, () -> HostFunctions.forget(key)); // each launch of the graph calls it
        }
    }
}
