package io.cistern.async;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;

/// Frees on one device that the driver refused, or would refuse since their stream is captured. Each is tried again
/// where that keeps the order of the streams: with the next call on its own stream while that lives, or when all work
/// of the device has finished; then any stream will do.
///
/// An address that the driver does not know is not kept: to try it again would be to free whatever is put there
/// next.
final class RefusedFrees {
    private static final System.Logger LOG = System.getLogger(RefusedFrees.class.getName());

    /// No handle of a stream.
    private static final long NONE = -1;

    /// One of them.
    record Refused(long address, long stream) {}

    private final MemoryPools pools;
    private final Graphs graphs;
    private final int device;
    private final List<Refused> frees = new ArrayList<>();

    /// Whether there may be any; read without the lock on every call.
    private volatile boolean any;

    RefusedFrees(MemoryPools pools, Graphs graphs, int device) {
        this.pools = pools;
        this.graphs = graphs;
        this.device = device;
    }

    /// Frees a block on a stream that another thread may begin to capture at any time, and in a capture it can't be
    /// freed. So the begin of one waits; beside others it may have begun, and ended, when the driver refuses.
    void free(long address, long stream) {
        boolean beside = false;
        try {
            beside = !graphs.unlessSheltered(device, () -> freed(address, stream));
            if (beside && !holds(address, stream)) {
                pools.free(device, address, stream);
            }
        } catch (CudaException failure) {
            if (beside && failure.result() == CudaResult.INVALID_VALUE) {
                keep(address, stream);
            } else {
                add(address, stream, failure);
            }
        }
    }

    private boolean freed(long address, long stream) {
        pools.free(device, address, stream);
        return true;
    }

    /// Keeps a free that the driver refused, if another try may help.
    void add(long address, long stream, CudaException failure) {
        if (failure.result().endsContext() || holds(address, stream)) {
            return;
        }
        LOG.log(Level.WARNING, "a free did not succeed: {0}", failure.getMessage());
        if (worthAnotherTry(failure)) {
            keep(address, stream);
        }
    }

    /// Keeps a free of memory that is no graph's until the capture of its stream has ended.
    ///
    /// @return whether there is one
    private boolean holds(long address, long stream) {
        boolean captured = isCaptured(stream);
        if (captured) {
            keep(address, stream);
        }
        return captured;
    }

    private synchronized void keep(long address, long stream) {
        // On another thread that handle would be another stream.
        frees.add(new Refused(address, stream == Streams.PER_THREAD_DEFAULT ? NONE : stream));
        any = true;
    }

    /// Also true where the driver won't tell, as for the legacy default stream beside a captured one that waits for it,
    /// which a call would spoil.
    private boolean isCaptured(long stream) {
        try {
            return graphs.captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return !untold.result().endsContext();
        }
    }

    /// Call before another call on a stream.
    void freeAgainOn(long stream) {
        if (any) {
            retryOn(stream);
        }
    }

    private synchronized void retryOn(long stream) {
        if (frees.stream().anyMatch(refused -> refused.stream == stream) && !isCaptured(stream)) {
            frees.removeIf(refused -> refused.stream == stream && done(refused, stream));
        }
        any = !frees.isEmpty();
    }

    /// The stream ends, and its handle may come again for another one.
    synchronized void streamClosing(long stream) {
        retryOn(stream);
        frees.replaceAll(refused -> refused.stream == stream ? new Refused(refused.address, NONE) : refused);
    }

    /// Those that there are.
    synchronized List<Refused> all() {
        return List.copyOf(frees);
    }

    /// Tries those again that there were before the device was synchronised: of later ones, the work may go on.
    ///
    /// @return whether there were any
    synchronized boolean freeAgain(List<Refused> before) {
        frees.removeIf(refused -> before.contains(refused) && done(refused, Streams.LEGACY_DEFAULT));
        any = !frees.isEmpty();
        return !before.isEmpty();
    }

    /// Whether there is nothing more to do for a free.
    private boolean done(Refused refused, long stream) {
        try {
            pools.free(device, refused.address, stream);
            return true;
        } catch (CudaException again) {
            return !worthAnotherTry(again);
        }
    }

    private static boolean worthAnotherTry(CudaException failure) {
        return !failure.result().endsContext() && failure.result() != CudaResult.INVALID_VALUE;
    }
}
