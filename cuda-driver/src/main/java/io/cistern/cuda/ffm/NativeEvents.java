package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;

/// Events of the real driver.
final class NativeEvents implements Events {
    private static final int TIMED = 0;

    /// `CU_EVENT_DISABLE_TIMING`
    static final int DISABLE_TIMING = 2;

    private final Contexts contexts;
    private final DriverFunction create;
    private final DriverFunction record;
    private final DriverFunction recordAll;
    private final DriverFunction query;
    private final DriverFunction synchronize;
    private final DriverFunction elapsedTime;
    private final DriverFunction destroy;

    NativeEvents(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        create = library.function(DriverCall.EVENT_CREATE, "LI");
        record = library.function(DriverCall.EVENT_RECORD, "LL");
        recordAll = library.function(DriverCall.CONTEXT_RECORD_EVENT, "LL");
        query = library.function(DriverCall.EVENT_QUERY, "L");
        synchronize = library.function(DriverCall.EVENT_SYNCHRONIZE, "L");
        elapsedTime = library.function(DriverCall.EVENT_ELAPSED_TIME, "LLL");
        destroy = library.function(DriverCall.EVENT_DESTROY, "L");
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
        try (Frame frame = contexts.enter(create, device)) {
            create.check(create.call(frame.out(), flags), "device, flags", device, flags);
            return frame.outLong();
        }
    }

    @Override
    public void record(int device, long event, long stream) {
        try (Frame _ = contexts.enter(record, device)) {
            record.check(record.call(event, stream), "device, event, stream", device, event, stream);
        }
    }

    @Override
    public void recordAll(int device, long event) {
        contexts.shelter().refuse(recordAll, device);
        try (Frame _ = contexts.enter(recordAll, device)) {
            recordAll.check(recordAll.call(contexts.primary(device), event), "device, event", device, event);
        }
    }

    @Override
    public boolean hasPassed(int device, long event) {
        try (Frame _ = contexts.enter(query, device)) {
            int code = query.call(event);
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
            try (Frame _ = contexts.enter(synchronize, device)) {
                synchronize.check(synchronize.call(event), "device, event", device, event);
            }
        });
    }

    @Override
    public float elapsedMillis(int device, long start, long end) {
        try (Frame frame = contexts.enter(elapsedTime, device)) {
            int code = elapsedTime.call(frame.out(), start, end);
            elapsedTime.check(code, "device, start, end", device, start, end);
            return frame.outFloat();
        }
    }

    @Override
    public void destroy(int device, long event) {
        try (Frame _ = contexts.enter(destroy, device)) {
            destroy.check(destroy.call(event), "device, event", device, event);
        }
    }
}
