package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;

/// Frees that the driver refused. Each is tried again where that keeps the order of the streams: with the next call
/// on its own stream while that lives, or when all work of the device has finished; then any stream will do.
///
/// An address that the driver does not know is not kept: to try it again would be to free whatever is put there
/// next.
final class RefusedFrees {
    private static final System.Logger LOG = System.getLogger(RefusedFrees.class.getName());

    /// No handle of a stream.
    private static final long NONE = -1;

    private record Refused(int device, long address, long stream) {}

    private final MemoryPools pools;
    private final List<Refused> frees = new ArrayList<>();

    /// Whether there may be any; read without the lock on every call.
    private volatile boolean any;

    RefusedFrees(MemoryPools pools) {
        this.pools = pools;
    }

    synchronized void add(int device, long address, long stream, CudaException failure) {
        LOG.log(Level.WARNING, "a free did not succeed: {0}", failure.getMessage());
        if (worthAnotherTry(failure)) {
            // On another thread that handle would be another stream.
            frees.add(new Refused(device, address, stream == Streams.PER_THREAD_DEFAULT ? NONE : stream));
            any = true;
        }
    }

    /// Call before another call on a stream.
    void freeAgainOn(int device, long stream) {
        if (any) {
            retryOn(device, stream);
        }
    }

    private synchronized void retryOn(int device, long stream) {
        frees.removeIf(refused -> refused.device == device && refused.stream == stream && done(refused, stream));
        any = !frees.isEmpty();
    }

    /// The stream ends, and its handle may come again for another one.
    synchronized void streamClosing(int device, long stream) {
        retryOn(device, stream);
        frees.replaceAll(refused -> refused.device == device && refused.stream == stream
                ? new Refused(device, refused.address, NONE)
                : refused);
    }

    /// Call after synchronising the device.
    synchronized void freeAgain(int device) {
        frees.removeIf(refused -> refused.device == device && done(refused, Streams.LEGACY_DEFAULT));
        any = !frees.isEmpty();
    }

    /// Whether there is nothing more to do for a free.
    private boolean done(Refused refused, long stream) {
        try {
            pools.free(refused.device, refused.address, stream);
            return true;
        } catch (CudaException again) {
            return !worthAnotherTry(again);
        }
    }

    private static boolean worthAnotherTry(CudaException failure) {
        return !failure.result().endsContext() && failure.result() != CudaResult.INVALID_VALUE;
    }
}
