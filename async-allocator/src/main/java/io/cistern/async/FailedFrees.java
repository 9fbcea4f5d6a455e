package io.cistern.async;

import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Graphs;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import java.lang.System.Logger.Level;
import java.util.Arrays;

/// Keeps frees on one device that failed: the driver refused them, or would refuse them since their stream is
/// captured, or the Java heap was full. Each is tried again when that keeps the order of the streams: with the
/// next call on its own stream while the stream lives, or when all work of the device has finished; then any
/// stream will do.
///
/// An address that the driver does not know is not kept: another try could free a later block at that address.
///
/// There is always room for some more frees, so that keeping one needs no Java heap. Nothing here throws for
/// lack of it before that room is used up.
final class FailedFrees {
    private static final System.Logger LOG = System.getLogger(FailedFrees.class.getName());

    /// Stands for no stream.
    private static final long NONE = -1;

    /// More than the number of threads that free at the same moment.
    private static final int ROOM = 64;

    private final MemoryPools pools;
    private final Graphs graphs;
    private final int device;

    // The first `count` entries are in use, in any order. Guarded by this.
    private long[] addresses = new long[2 * ROOM];
    private long[] streams = new long[2 * ROOM];
    private long[] numbers = new long[2 * ROOM];
    private int count;

    /// The number of the last free that was kept. Guarded by this.
    private long lastNumber;

    /// Whether any free may be kept; read without the lock on every call.
    private volatile boolean any;

    FailedFrees(MemoryPools pools, Graphs graphs, int device) {
        this.pools = pools;
        this.graphs = graphs;
        this.device = device;
    }

    /// Frees a block on a stream that another thread may begin to capture at any time; in a capture it can't be
    /// freed. So this call delays the start of a capture. It can't while captures are already under way: then a
    /// capture of the stream may begin, and even end, before the driver refuses.
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
        LOG.log(Level.WARNING, "a free failed: {0}", failure.getMessage());
    }

    /// Keeps a free, of memory that belongs to no graph, until the capture of its stream has ended.
    ///
    /// @return whether the stream is captured
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
        // On another thread that handle would name another stream.
        streams[count] = stream == Streams.PER_THREAD_DEFAULT ? NONE : stream;
        numbers[count] = ++lastNumber;
        count++;
        any = true;
        if (count + ROOM > addresses.length) {
            grow(); // last: if it fails, this free is kept, and there is still room for the next ones
        }
    }

    private void grow() {
        long[] moreAddresses = Arrays.copyOf(addresses, 2 * addresses.length);
        long[] moreStreams = Arrays.copyOf(streams, moreAddresses.length);
        numbers = Arrays.copyOf(numbers, moreAddresses.length);
        streams = moreStreams;
        addresses = moreAddresses;
    }

    /// Returns whether a stream is captured. Also true if the driver doesn't report it, as for the legacy default
    /// stream while a stream that waits for it is captured: a call would invalidate that capture.
    private boolean isCaptured(long stream) {
        try {
            return graphs.captureStatus(device, stream) != CaptureStatus.NONE;
        } catch (CudaException untold) {
            return !untold.result().endsContext();
        } catch (OutOfMemoryError ofTheHeap) {
            return true;
        }
    }

    /// Retries the frees of a stream; called before another call on that stream.
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

    /// Handles the end of a stream, whose handle may be reused for another one.
    synchronized void streamClosing(long stream) {
        retryOn(stream);
        for (int at = 0; at < count; at++) {
            if (streams[at] == stream) {
                streams[at] = NONE;
            }
        }
    }

    /// Returns the number of the last free, or 0 if none is kept.
    synchronized long latest() {
        return count == 0 ? 0 : lastNumber;
    }

    /// Retries the frees that were kept before a synchronisation of the device. Work may still use the blocks of
    /// later frees.
    ///
    /// @param before the number that [#latest] returned before the synchronisation
    /// @return whether there were any
    synchronized boolean freeAgain(long before) {
        for (int at = count - 1; at >= 0; at--) {
            if (numbers[at] <= before && done(addresses[at], Streams.LEGACY_DEFAULT)) {
                remove(at);
            }
        }
        return before != 0;
    }

    /// Frees a block; returns whether no further try is needed.
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
