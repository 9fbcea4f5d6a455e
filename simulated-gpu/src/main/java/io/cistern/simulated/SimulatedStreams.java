package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.Gate;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.List;
import java.util.function.Supplier;

/// [Streams] over the model.
final class SimulatedStreams implements Streams {
    private final Machine machine;

    SimulatedStreams(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long create(int device) {
        return create(DriverCall.STREAM_CREATE, device, true);
    }

    @Override
    public long create(int device, boolean nonBlocking, int priority) {
        return create(DriverCall.STREAM_CREATE_WITH_PRIORITY, device, nonBlocking);
    }

    private long create(DriverCall call, int device, boolean nonBlocking) {
        return machine.call(call, device, () -> {
            return machine.streams.create(device, !nonBlocking);
        });
    }

    @Override
    public void destroy(int device, long stream) {
        machine.run(DriverCall.STREAM_DESTROY, device, "stream", stream, () -> {
            failIf(stream >= 0 && stream <= PER_THREAD_DEFAULT, CudaResult.INVALID_HANDLE);
            StreamQueue queue = machine.streams.find(DriverCall.STREAM_DESTROY, device, stream);
            Capture capture = machine.captures.of(queue);
            if (capture != null) {
                capture.invalidate();
            }
            machine.streams.destroy(queue, stream);
        });
    }

    @Override
    public void synchronize(int device, long stream) {
        machine.runOnStream(DriverCall.STREAM_SYNCHRONIZE, device, stream, queue -> {
            machine.captures.refuseCaptured(queue);
            machine.awaitAll(queue);
            machine.poolsSynchronised(device);
        });
    }

    @Override
    public boolean isIdle(int device, long stream) {
        return machine.callOnStream(DriverCall.STREAM_QUERY, device, stream, queue -> {
            machine.captures.refuseCaptured(queue);
            if (!machine.streams.idle(queue)) {
                return false;
            }
            machine.hostSaw(queue);
            return true;
        });
    }

    @Override
    public boolean isBlocking(int device, long stream) {
        return machine.callOnStream(DriverCall.STREAM_GET_FLAGS, device, stream, StreamQueue::blocking);
    }

    @Override
    public void await(int device, long stream, long event) {
        DriverCall call = DriverCall.STREAM_WAIT_EVENT;
        Supplier<String> arguments = () ->
                "device=" + device + ", stream=0x" + Long.toHexString(stream) + ", event=0x" + Long.toHexString(event);
        machine.run(call, device, arguments, () -> {
            StreamQueue queue = machine.streams.find(call, device, stream);
            EventMark mark = machine.handles.find(EventMark.class, event, CudaResult.INVALID_HANDLE, call, device);
            if (awaitsInCapture(queue, mark)) {
                return;
            }
            queue.clock().include(mark.clock);
            if (!mark.passed()) {
                machine.streams.enqueue(queue, mark.waitForPresentRecord());
            }
        });
    }

    /// Orders nodes instead of work if a capture is involved; returns false if none is.
    private boolean awaitsInCapture(StreamQueue stream, EventMark mark) {
        Capture own = machine.captures.of(stream);
        Capture marked = mark.capture;
        if (marked == null) {
            if (own == null || mark.work == null) {
                return own != null; // waiting for an event that was never recorded does nothing
            }
            own.invalidate();
            throw new DriverFailure(CudaResult.STREAM_CAPTURE_ISOLATION);
        }
        marked.requireValid();
        if (own != null && own != marked) {
            own.invalidate();
            marked.invalidate();
            throw new DriverFailure(CudaResult.STREAM_CAPTURE_MERGE);
        }
        marked.await(stream, mark.nodes);
        return true;
    }

    @Override
    public long id(int device, long stream) {
        return machine.callOnStream(DriverCall.STREAM_GET_ID, device, stream, StreamQueue::id);
    }

    @Override
    public void launchHostFunction(int device, long stream, Runnable function) {
        machine.runOnStream(DriverCall.LAUNCH_HOST_FUNC, device, stream, queue -> {
            machine.give(queue, "host function", each -> {
                Gate gate = machine.callbacks.gateFor(function);
                machine.streams.enqueue(each, new Work(machine.costs.deviceLatencyNanos(), () -> {}, gate, List.of()));
                machine.callbacks.start();
            });
        });
    }
}
