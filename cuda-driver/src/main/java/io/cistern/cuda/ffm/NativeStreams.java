package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;

/// Streams and host functions of the real driver.
final class NativeStreams implements Streams {
    private static final int BLOCKING = 0;

    /// `CU_STREAM_NON_BLOCKING`
    static final int NON_BLOCKING = 1;

    private final Contexts contexts;
    private final DriverFunction create;
    private final DriverFunction createWithPriority;
    private final DriverFunction destroy;
    private final DriverFunction synchronize;
    private final DriverFunction query;
    private final DriverFunction waitEvent;
    private final DriverFunction getId;
    private final DriverFunction getFlags;
    private final DriverFunction launchHost;
    private final NativeGraphs graphs;

    NativeStreams(DriverLibrary library, Contexts contexts, NativeGraphs graphs) {
        this.contexts = contexts;
        this.graphs = graphs;
        create = library.function(DriverCall.STREAM_CREATE, "LI");
        createWithPriority = library.function(DriverCall.STREAM_CREATE_WITH_PRIORITY, "LII");
        destroy = library.function(DriverCall.STREAM_DESTROY, "L");
        synchronize = library.function(DriverCall.STREAM_SYNCHRONIZE, "L");
        query = library.function(DriverCall.STREAM_QUERY, "L");
        waitEvent = library.function(DriverCall.STREAM_WAIT_EVENT, "LLI");
        getId = library.function(DriverCall.STREAM_GET_ID, "LL");
        getFlags = library.function(DriverCall.STREAM_GET_FLAGS, "LL");
        launchHost = library.function(DriverCall.LAUNCH_HOST_FUNC, "LLL");
    }

    @Override
    public long create(int device) {
        try (Frame frame = contexts.enter(create, device)) {
            create.check(create.call(frame.out(), NON_BLOCKING), "device", device);
            return frame.outLong();
        }
    }

    @Override
    public long create(int device, boolean nonBlocking, int priority) {
        int flags = nonBlocking ? NON_BLOCKING : BLOCKING;
        try (Frame frame = contexts.enter(createWithPriority, device)) {
            int code = createWithPriority.call(frame.out(), flags, priority);
            createWithPriority.check(code, "device, flags, priority", device, flags, priority);
            return frame.outLong();
        }
    }

    @Override
    public void destroy(int device, long stream) {
        try (Frame _ = contexts.enter(destroy, device)) {
            destroy.check(destroy.call(stream), "device, stream", device, stream);
        }
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
        try (Frame _ = contexts.enter(synchronize, device)) {
            synchronize.check(synchronize.call(stream), "device, stream", device, stream);
        }
    }

    @Override
    public boolean isIdle(int device, long stream) {
        try (Frame _ = contexts.enter(query, device)) {
            int code = query.call(stream);
            if (code == CudaResult.NOT_READY.code()) {
                return false;
            }
            query.check(code, "device, stream", device, stream);
            return true;
        }
    }

    @Override
    public boolean isBlocking(int device, long stream) {
        try (Frame frame = contexts.enter(getFlags, device)) {
            getFlags.check(getFlags.call(stream, frame.out()), "device, stream", device, stream);
            return (frame.outInt() & NON_BLOCKING) == 0;
        }
    }

    @Override
    public void await(int device, long stream, long event) {
        try (Frame _ = contexts.enter(waitEvent, device)) {
            waitEvent.check(waitEvent.call(stream, event, 0), "device, stream, event", device, stream, event);
        }
    }

    @Override
    public long id(int device, long stream) {
        try (Frame frame = contexts.enter(getId, device)) {
            getId.check(getId.call(stream, frame.out()), "device, stream", device, stream);
            return frame.outLong();
        }
    }

    @Override
    public void launchHostFunction(int device, long stream, Runnable function) {
        long graph = graphs.capturingGraphIfAny(device, stream);
        long entryPoint = graph == 0 ? HostFunctions.entryPoint() : HostFunctions.repeatingEntryPoint();
        long key = HostFunctions.keep(function);
        boolean launched = false;
        try (Frame _ = contexts.enter(launchHost, device)) {
            launchHost.check(launchHost.call(stream, entryPoint, key), "device, stream", device, stream);
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
