package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Events;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.SharedEvent;
import io.cistern.simulated.internal.stream.StreamClock;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;

/// [Events] over the model.
final class SimulatedEvents implements Events {
    private static final float NANOS_PER_MILLI = 1e6f;

    private final Machine machine;

    SimulatedEvents(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long create(int device) {
        return create(device, false);
    }

    @Override
    public long createTimed(int device) {
        return create(device, true);
    }

    private long create(int device, boolean timed) {
        return machine.call(
                DriverCall.EVENT_CREATE,
                device,
                () -> "device=" + device + ", timed=" + timed,
                () -> machine.handles.register(new EventMark(device, timed)));
    }

    @Override
    public void record(int device, long event, long stream) {
        machine.run(DriverCall.EVENT_RECORD, device, "event", event, () -> {
            EventMark mark = recordable(DriverCall.EVENT_RECORD, device, event);
            StreamQueue queue = machine.streams.find(DriverCall.EVENT_RECORD, device, stream);
            machine.captures.refuseImplicit(queue, machine.device(device).legacy);
            Capture capture = machine.captures.of(queue);
            if (capture != null) {
                capture.requireValid();
                mark.record(queue, capture);
            } else {
                record(mark, queue);
            }
        });
    }

    @Override
    public void recordAll(int device, long event) {
        machine.run(DriverCall.CONTEXT_RECORD_EVENT, device, "event", event, () -> {
            EventMark mark = recordable(DriverCall.CONTEXT_RECORD_EVENT, device, event);
            record(mark, machine.streams.followAll(device));
        });
    }

    /// Records an event. A record that other processes see is published like a host function, so that time
    /// moves until it passes even if this process makes no calls.
    private void record(EventMark mark, StreamQueue queue) {
        SharedEvent shared = mark.shared;
        Work marker = Work.marker();
        if (shared != null) {
            long record = shared.record();
            marker = Work.gated(machine.callbacks.gateFor(() -> shared.pass(record)));
            machine.callbacks.start();
        }
        machine.streams.enqueue(queue, marker);
        mark.record(queue, marker);
    }

    private EventMark recordable(DriverCall call, int device, long event) {
        EventMark mark = find(call, device, event);
        failIf(mark.device != device, CudaResult.INVALID_HANDLE);
        return mark;
    }

    @Override
    public boolean hasPassed(int device, long event) {
        return machine.call(DriverCall.EVENT_QUERY, device, "event", event, () -> {
            EventMark mark = find(DriverCall.EVENT_QUERY, device, event);
            refuseCaptured(mark);
            if (!mark.passed()) {
                return false;
            }
            machine.hostSaw(mark.clock);
            return true;
        });
    }

    @Override
    public void synchronize(int device, long event) {
        machine.run(DriverCall.EVENT_SYNCHRONIZE, device, "event", event, () -> {
            EventMark mark = find(DriverCall.EVENT_SYNCHRONIZE, device, event);
            refuseCaptured(mark);
            StreamClock seen = mark.clock;
            machine.waitUntil(device, mark.presentRecord());
            machine.hostSynchronised(seen);
            machine.poolsSynchronised(device);
        });
    }

    @Override
    public float elapsedMillis(int device, long start, long end) {
        return machine.call(DriverCall.EVENT_ELAPSED_TIME, device, "event", start, () -> {
            EventMark from = find(DriverCall.EVENT_ELAPSED_TIME, device, start);
            EventMark to = find(DriverCall.EVENT_ELAPSED_TIME, device, end);
            Work first = from.work;
            Work last = to.work;
            if (!from.timed || !to.timed || first == null || last == null) {
                throw new DriverFailure(CudaResult.INVALID_HANDLE);
            }
            failIf(!first.done() || !last.done(), CudaResult.NOT_READY);
            return (last.endNanos() - first.endNanos()) / NANOS_PER_MILLI;
        });
    }

    @Override
    public void destroy(int device, long event) {
        machine.run(DriverCall.EVENT_DESTROY, device, "event", event, () -> {
            SharedEvent shared = find(DriverCall.EVENT_DESTROY, device, event).shared;
            if (shared != null) {
                shared.close();
            }
            machine.handles.forget(event);
        });
    }

    private static void refuseCaptured(EventMark mark) {
        failIf(mark.capture != null, CudaResult.CAPTURED_EVENT);
    }

    private EventMark find(DriverCall call, int device, long event) {
        return machine.handles.find(EventMark.class, event, CudaResult.INVALID_HANDLE, call, device);
    }
}
