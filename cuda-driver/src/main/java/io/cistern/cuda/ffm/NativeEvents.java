package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;

/// Events of the real driver.
final class NativeEvents extends NativeFacet implements Events {
    private static final int TIMED = 0;

    /// `CU_EVENT_DISABLE_TIMING`
    static final int DISABLE_TIMING = 2;

    private final DriverFunction create = bind(DriverCall.EVENT_CREATE, "LI");
    private final DriverFunction record = bind(DriverCall.EVENT_RECORD, "LL");
    private final DriverFunction recordAll = bind(DriverCall.CONTEXT_RECORD_EVENT, "LL");
    private final DriverFunction query = bind(DriverCall.EVENT_QUERY, "L");
    private final DriverFunction synchronize = bind(DriverCall.EVENT_SYNCHRONIZE, "L");
    private final DriverFunction elapsedTime = bind(DriverCall.EVENT_ELAPSED_TIME, "LLL");
    private final DriverFunction destroy = bind(DriverCall.EVENT_DESTROY, "L");

    NativeEvents(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public long create(int device) {
        return create(device, DISABLE_TIMING);
    }

    @Override
    public long createTimed(int device) {
        return create(device, TIMED);
    }

    private long create(int device, int flags) {
        return ask(create, device, "device, flags", flags);
    }

    @Override
    public void record(int device, long event, long stream) {
        run(record, device, "device, event, stream", event, stream);
    }

    @Override
    public void recordAll(int device, long event) {
        contexts.shelter().refuse(recordAll, device);
        try (Frame frame = contexts.enter(recordAll, device)) {
            recordAll.check(recordAll.call(frame, contexts.primary(device), event), "device, event", device, event);
        }
    }

    @Override
    public boolean hasPassed(int device, long event) {
        try (Frame frame = contexts.enter(query, device)) {
            int code = query.call(frame, event);
            if (code == CudaResult.NOT_READY.code()) {
                return false;
            }
            query.check(code, "device, event", device, event);
            return true;
        }
    }

    @Override
    public void synchronize(int device, long event) {
        BlockingCalls.run(() -> {
            run(synchronize, device, "device, event", event);
        });
    }

    @Override
    public float elapsedMillis(int device, long start, long end) {
        try (Frame frame = contexts.enter(elapsedTime, device)) {
            int code = elapsedTime.call(frame, frame.out(), start, end);
            elapsedTime.check(code, "device, start, end", device, start, end);
            return frame.outFloat();
        }
    }

    @Override
    public void destroy(int device, long event) {
        run(destroy, device, "device, event", event);
    }
}
