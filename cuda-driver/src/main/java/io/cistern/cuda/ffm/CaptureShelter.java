package io.cistern.cuda.ffm;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;

/// Lets driver calls coexist with captures under way. Like the context, the OS thread's mode is set right
/// before a call and restored right after it, so that a virtual thread may resume on another OS thread between
/// two calls.
final class CaptureShelter {
    private static final AtomicIntegerFieldUpdater<CaptureShelter> ALL =
            AtomicIntegerFieldUpdater.newUpdater(CaptureShelter.class, "all");

    private final DriverFunction exchangeMode;
    private final AtomicIntegerArray devices;

    /// Calls that would invalidate a capture hold the read lock; a shelter that begins takes the write lock.
    private final ReentrantReadWriteLock beginnings = new ReentrantReadWriteLock();

    /// Read for nearly every call, so it is a field here, not behind a reference.
    private volatile int all;

    CaptureShelter(DriverLibrary library, int deviceCount) {
        exchangeMode = library.function(DriverCall.THREAD_EXCHANGE_CAPTURE_MODE, "L");
        devices = new AtomicIntegerArray(deviceCount);
    }

    boolean isOn() {
        return all != 0;
    }

    boolean isOn(int device) {
        return isOn() && devices.get(device) != 0;
    }

    void change(int device, int change) {
        beginnings.writeLock().lock();
        try {
            devices.addAndGet(device, change);
            ALL.addAndGet(this, change);
        } finally {
            beginnings.writeLock().unlock();
        }
    }

    /// See [io.cistern.cuda.Graphs#unlessSheltered].
    boolean unlessOn(int device, BooleanSupplier call) {
        beginnings.readLock().lock();
        try {
            return !isOn(device) && call.getAsBoolean();
        } finally {
            beginnings.readLock().unlock();
        }
    }

    /// Refuses a call that would invalidate the captures of a device.
    void refuse(DriverFunction attempted, int device) {
        if (isOn(device)) {
            throw attempted.failed(
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(),
                    "device=" + device + ", not called, since it would invalidate the captures under way");
        }
    }

    void enter(Frame frame) {
        frame.shelter(this, exchange(frame, CaptureMode.RELAXED.code()));
    }

    /// Sets the calling thread's mode and returns the previous one.
    int exchange(Frame frame, int mode) {
        frame.setContext(mode);
        int code = exchangeMode.callUncounted(frame.contextOut());
        return code == 0 ? (int) frame.context() : mode;
    }
}
