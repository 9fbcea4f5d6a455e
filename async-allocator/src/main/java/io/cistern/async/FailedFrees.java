package io.cistern.async;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import java.lang.System.Logger.Level;
import java.util.Arrays;

/// Frees on one device that the driver refused, or would refuse since their stream is captured, or that could not
/// be made for lack of Java heap. Each is tried again where that keeps the order of the streams: with the next
/// call on its own stream while that lives, or when all work of the device has finished; then any stream will do.
///
/// An address that the driver does not know is not kept: to try it again would be to free whatever is put there
/// next.
///
/// There is always room for some more, so that they are kept without Java heap. Nothing here throws for lack of
/// it before that room is used up.
final class FailedFrees {
    private static final System.Logger LOG = System.getLogger(FailedFrees.class.getName());

    /// No handle of a stream.
    private static final long NONE = -1;

    /// More than threads that free in one moment.
    private static final int ROOM = 64;

    private final MemoryPools pools;
    private final Graphs graphs;
    private final int device;

    // The first `count` are in use, in any order. Guarded by this.
    private long[] addresses = new long[2 * ROOM];
    private long[] streams = new long[2 * ROOM];
    private long[] numbers = new long[2 * ROOM];
    private int count;

    /// The number of the last one that was kept. Guarded by this.
    private long lastNumber;

    /// Whether there may be any; read without the lock on every call.
    private volatile boolean any;

    FailedFrees(MemoryPools pools, Graphs graphs, int device) {
        this.pools = pools;
        this.graphs = graphs;
        this.device = device;
    }

    /// Frees a block on a stream that another thread may begin to capture at any time, and in a capture it can't
    /// be freed. So the begin of one waits; beside others it may have begun, and ended, when the driver refuses.
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
        } catch (OutOfMemoryError ofTheHeap) {
            keep(address, stream);
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
        if (worthAnotherTry(failure)) {
            keep(address, stream);
        }
        try {
            LOG.log(Level.WARNING, "a free did not succeed: {0}", failure.getMessage());
        } catch (OutOfMemoryError ofTheHeap) {
            // The free is kept, and the next refusal is told.
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

    /// Keeps a free that was not made.
    synchronized void keep(long address, long stream) {
        if (count == addresses.length) {
            grow();
        }
        addresses[count] = address;
        // On another thread that handle would be another stream.
        streams[count] = stream == Streams.PER_THREAD_DEFAULT ? NONE : stream;
        numbers[count] = ++lastNumber;
        count++;
        any = true;
        if (count + ROOM > addresses.length) {
            try {
                grow();
            } catch (OutOfMemoryError ofTheHeap) {
                // This one is kept, and the next ones have room still.
            }
        }
    }

    private void grow() {
        long[] moreAddresses = Arrays.copyOf(addresses, 2 * addresses.length);
        long[] moreStreams = Arrays.copyOf(streams, moreAddresses.length);
        numbers = Arrays.copyOf(numbers, moreAddresses.length);
        streams = moreStreams;
        addresses = moreAddresses;
    }

    /// Also true where the driver won't tell, as for the legacy default stream beside a captured one that waits
    /// for it, which a call would spoil.
    private boolean isCaptured(long stream) {
        try {
            return graphs.captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return !untold.result().endsContext();
        } catch (OutOfMemoryError ofTheHeap) {
            return true;
        }
    }

    /// Call before another call on a stream.
    void freeAgainOn(long stream) {
        if (any) {
            retryOn(stream);
        }
    }

    private synchronized void retryOn(long stream) {
        if (isAnyOn(stream) && !isCaptured(stream)) {
            for (int at = count - 1; at >= 0; at--) {
                if (streams[at] == stream && done(addresses[at], stream)) {
                    remove(at);
                }
            }
        }
    }

    private boolean isAnyOn(long stream) {
        boolean found = false;
        for (int at = 0; at < count; at++) {
            found |= streams[at] == stream;
        }
        return found;
    }

    private void remove(int at) {
        count--;
        addresses[at] = addresses[count];
        streams[at] = streams[count];
        numbers[at] = numbers[count];
        any = count > 0;
    }

    /// The stream ends, and its handle may come again for another one.
    synchronized void streamClosing(long stream) {
        retryOn(stream);
        for (int at = 0; at < count; at++) {
            if (streams[at] == stream) {
                streams[at] = NONE;
            }
        }
    }

    /// The number of the last one that is kept; 0 if there is none.
    synchronized long latest() {
        return count == 0 ? 0 : lastNumber;
    }

    /// Tries those again that there were before the device was synchronised: of later ones, the work may go on.
    ///
    /// @param before what [#latest] said then
    /// @return whether there were any
    synchronized boolean freeAgain(long before) {
        for (int at = count - 1; at >= 0; at--) {
            if (numbers[at] <= before && done(addresses[at], Streams.LEGACY_DEFAULT)) {
                remove(at);
            }
        }
        return before != 0;
    }

    /// Whether there is nothing more to do for a free.
    private boolean done(long address, long stream) {
        try {
            pools.free(device, address, stream);
            return true;
        } catch (CudaException again) {
            return !worthAnotherTry(again);
        } catch (OutOfMemoryError ofTheHeap) {
            return false;
        }
    }

    private static boolean worthAnotherTry(CudaException failure) {
        return !failure.result().endsContext() && failure.result() != CudaResult.INVALID_VALUE;
    }
}
