package io.cistern.cuda.ffm;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import java.lang.System.Logger.Level;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.ReentrantLock;

/// Retains the devices' primary contexts, and makes the right one current for each call.
///
/// The driver keeps the current context per OS thread, and a virtual thread changes its OS thread when it
/// parks. So each call queries the current context, sets its own if necessary, and restores a foreign one,
/// and nothing in between parks:
///
/// 1. find the primary context, retained at first use (takes a lock, so it may park);
/// 2. take a frame (may allocate one);
/// 3. call `cuCtxGetCurrent`, and `cuCtxSetCurrent` if another context is current;
/// 4. make the call itself;
/// 5. call `cuCtxSetCurrent` with the foreign context, if there was one. If there was none, the primary context
///    stays current, so that the next call finds it.
///
/// **Without a query.** Some calls take a handle that identifies the context, such as a pool's or a
/// stream's. They are made at once ([#isNamedBy]). If one fails, the current context is queried: if it is
/// the primary one, the failure is final; otherwise the call is repeated by the steps above. So an
/// allocation and its free cost two calls less, and are correct whether or not the driver checks the
/// current context.
final class Contexts {
    private static final VarHandle PRIMARY = MethodHandles.arrayElementVarHandle(long[].class);

    private final DriverFunction count;
    private final DriverFunction retain;
    private final DriverFunction release;
    private final DriverFunction getCurrent;
    private final DriverFunction setCurrent;
    private final DriverFunction getDevice;

    /// `CUdevice` by ordinal.
    private final int[] handles;

    /// By ordinal; 0 if not retained yet, or closed. Accessed through PRIMARY, except where a stale 0 only
    /// leads to the slow path.
    private final long[] primary;

    private final CaptureShelter shelter;

    private final ReentrantLock lock = new ReentrantLock();

    /// Written under the lock.
    private volatile boolean closed;

    Contexts(DriverLibrary library, int deviceCount) {
        count = library.function(DriverCall.DEVICE_GET_COUNT, "L");
        retain = library.function(DriverCall.PRIMARY_CONTEXT_RETAIN, "LI");
        release = library.function(DriverCall.PRIMARY_CONTEXT_RELEASE, "I");
        getCurrent = library.function(DriverCall.CONTEXT_GET_CURRENT, "L");
        setCurrent = library.function(DriverCall.CONTEXT_SET_CURRENT, "L");
        getDevice = library.function(DriverCall.CONTEXT_GET_DEVICE, "L");
        primary = new long[deviceCount];
        shelter = new CaptureShelter(library, deviceCount);
        handles = new int[deviceCount];
        DriverFunction get = library.function(DriverCall.DEVICE_GET, "LI");
        try (Frame frame = Frame.acquire()) {
            for (int device = 0; device < deviceCount; device++) {
                get.check(get.call(frame, frame.out(), device), "device", device);
                handles[device] = frame.outInt();
            }
        }
    }

    int count() {
        requireOpen(count);
        return handles.length;
    }

    /// Returns the `CUdevice` of an ordinal.
    int handle(DriverFunction attempted, int device) {
        requireOpen(attempted);
        requireKnown(attempted, device);
        return handles[device];
    }

    long primary(int device) {
        return primary(retain, device);
    }

    long primary(DriverFunction attempted, int device) {
        requireKnown(attempted, device);
        long context = (long) PRIMARY.getVolatile(primary, device);
        return context != 0 ? context : retain(attempted, device);
    }

    boolean isRetained(int device) {
        return (long) PRIMARY.getVolatile(primary, device) != 0;
    }

    /// Makes a device's primary context current until the frame is closed.
    ///
    /// @param attempted the intended call, which the exception names if no context can be set
    Frame enter(DriverFunction attempted, int device) {
        long wanted = primary(attempted, device);
        Frame frame = Frame.acquire();
        int code = getCurrent.callCritical(frame.contextOut());
        if (code != 0 || frame.context() != wanted) {
            change(frame, code, wanted);
        }
        if (shelter.isOn()) {
            shelter.enter(frame);
        }
        return frame;
    }

    /// Returns whether a stream names its context and the device's context is retained. A default stream names
    /// none: it belongs to the current context. False while calls are sheltered from captures, since sheltering
    /// is a mode of the thread.
    boolean isNamedBy(long stream, int device) {
        return !shelter.isOn() && isNamedInCaptures(stream, device);
    }

    /// Returns the same as [#isNamedBy], but also while calls are sheltered. For calls that no capture
    /// forbids.
    boolean isNamedInCaptures(long stream, int device) {
        return stream > Streams.PER_THREAD_DEFAULT && device >= 0 && device < primary.length && primary[device] != 0;
    }

    boolean isCurrent(Frame frame, int device) {
        return getCurrent.callCritical(frame.contextOut()) == 0
                && frame.context() == (long) PRIMARY.getVolatile(primary, device);
    }

    /// Returns the device whose primary context is current on this thread, or −1 if no context is current.
    int currentDevice() {
        requireOpen(getCurrent);
        long current = current();
        if (current == 0) {
            return -1;
        }
        for (int device = 0; device < primary.length; device++) {
            if ((long) PRIMARY.getVolatile(primary, device) == current) {
                return device;
            }
        }
        return deviceOfContext(current);
    }

    private long current() {
        try (Frame frame = Frame.acquire()) {
            int code = getCurrent.callCritical(frame.contextOut());
            if (code != 0) {
                throw getCurrent.failed(code, "");
            }
            return frame.context();
        }
    }

    /// Returns the device of the current context, if that is a primary context that was not retained here yet.
    private int deviceOfContext(long current) {
        int device = 0;
        try (Frame frame = Frame.acquire()) {
            getDevice.check(getDevice.call(frame, frame.out()), "context", current);
            while (device < handles.length && handles[device] != frame.outInt()) {
                device++;
            }
        }
        if (device == handles.length || primary(device) != current) {
            throw getCurrent.failed(
                    CudaResult.INVALID_CONTEXT.code(),
                    Arguments.text("context", current) + ", which is not a device's primary context");
        }
        return device;
    }

    private void change(Frame frame, int codeOfGet, long wanted) {
        long current = frame.context();
        int code = codeOfGet != 0 ? codeOfGet : setCurrent.callUncounted(wanted);
        if (code != 0) {
            frame.close();
            throw (codeOfGet != 0 ? getCurrent : setCurrent).failed(code, Arguments.text("context", wanted));
        }
        if (current != 0) {
            frame.giveBack(this, current);
        }
    }

    CaptureShelter shelter() {
        return shelter;
    }

    /// Makes a context current and returns the previous one.
    long exchange(long wanted) {
        try (Frame frame = Frame.acquire()) {
            getCurrent.check(getCurrent.callCritical(frame.contextOut()), "context", wanted);
            long current = frame.context();
            if (current != wanted) {
                setCurrent.check(setCurrent.callUncounted(wanted), "context", wanted);
            }
            return current;
        }
    }

    void restore(long foreign) {
        setCurrent.check(setCurrent.callUncounted(foreign), "foreign context", foreign);
    }

    private long retain(DriverFunction attempted, int device) {
        lock.lock();
        try {
            requireOpen(attempted);
            long context = (long) PRIMARY.getVolatile(primary, device);
            if (context == 0) {
                try (Frame frame = Frame.acquire()) {
                    retain.check(retain.call(frame, frame.out(), handles[device]), "device", device);
                    context = frame.outLong();
                }
                PRIMARY.setVolatile(primary, device, context);
            }
            return context;
        } finally {
            lock.unlock();
        }
    }

    /// Releases the retained contexts. Continues if the driver refuses: after a sticky error nothing is
    /// left to save.
    void close() {
        lock.lock();
        try (Frame frame = Frame.acquire()) {
            closed = true;
            for (int device = 0; device < handles.length; device++) {
                if ((long) PRIMARY.getAndSet(primary, device, 0L) != 0) {
                    int code = release.call(frame, handles[device]);
                    if (code != 0) {
                        System.getLogger(Contexts.class.getName())
                                .log(
                                        Level.DEBUG,
                                        "primary context of device {0}: {1}",
                                        device,
                                        CudaResult.describe(code));
                    }
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private void requireOpen(DriverFunction attempted) {
        if (closed) {
            throw attempted.failed(CudaResult.DEINITIALIZED.code(), "this driver is closed");
        }
    }

    private void requireKnown(DriverFunction attempted, int device) {
        if (device < 0 || device >= handles.length) {
            throw attempted.failed(
                    CudaResult.INVALID_DEVICE.code(), "device=" + device + ", devices=" + handles.length);
        }
    }
}
