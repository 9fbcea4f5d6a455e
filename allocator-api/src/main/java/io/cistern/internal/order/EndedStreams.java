package io.cistern.internal.order;

import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.Arrays;

/// Knows the streams of one device whose end was announced and whose handles did not come again, for allocators
/// that pass the handle of a free on to the driver.
///
/// - A block may be freed on a stream that has ended. Its handle names no stream or, unknown to the allocator, a
///   later one. So the free comes after all work of the device.
/// - If the handle comes again, an allocation or a recorded use shows it: only an existing stream can ask for
///   these. Then the new stream waits, on the device, for the work of the one that had the handle before. So a
///   block of the first stream that is freed by the handle is freed after the work of both.
///
/// **Invariant.** Handles are sorted, and each has the fence after the work of the streams that had it; 0 once
/// that is known to be done.
///
/// **Threads.** Any. [#contains] and [#opened] cost one read if no stream has ended, and make no garbage.
public final class EndedStreams {
    /// Replaced under the monitor, never changed.
    private record Ends(long[] handles, long[] fences) {}

    private static final Ends NONE = new Ends(new long[0], new long[0]);

    private final int device;
    private final StreamOrder order;
    private volatile Ends ends = NONE;

    public EndedStreams(int device, StreamOrder order) {
        this.device = device;
        this.order = order;
    }

    /// Records the end of a stream, which is still there. The default streams do not end.
    public synchronized void closing(long stream) {
        if (Long.compareUnsigned(stream, Streams.PER_THREAD_DEFAULT) <= 0) {
            return;
        }
        Ends before = ends;
        releasePassed(before.fences);
        int at = Arrays.binarySearch(before.handles, stream);
        if (at >= 0) { // the handle came again without asking for anything
            long both = order.recordAll(device);
            order.release(device, before.fences[at]);
            before.fences[at] = both;
            return;
        }
        Ends after = new Ends(with(before.handles, ~at, stream), with(before.fences, ~at, 0));
        after.fences[~at] = order.record(device, stream);
        ends = after;
    }

    /// Keeps no event for a stream whose work is done, since its handle may never come again.
    private void releasePassed(long[] fences) {
        for (int i = 0; i < fences.length; i++) {
            if (fences[i] != 0 && order.passed(device, fences[i])) {
                order.release(device, fences[i]);
                fences[i] = 0;
            }
        }
    }

    private static long[] with(long[] before, int at, long value) {
        long[] after = new long[before.length + 1];
        System.arraycopy(before, 0, after, 0, at);
        System.arraycopy(before, at, after, at + 1, before.length - at);
        after[at] = value;
        return after;
    }

    private static long[] without(long[] before, int at) {
        long[] after = Arrays.copyOf(before, before.length - 1);
        System.arraycopy(before, at + 1, after, at, after.length - at);
        return after;
    }

    /// Returns whether a handle's stream has ended, and the handle has not come again as far as is known.
    public boolean contains(long stream) {
        long[] handles = ends.handles;
        return handles.length > 0 && Arrays.binarySearch(handles, stream) >= 0;
    }

    /// Notes that a stream exists, before the allocation or use that it asks for. It then comes after the streams
    /// that had its handle before; as long as a capture forbids that, it counts as ended.
    public void opened(long stream) {
        if (contains(stream)) {
            follow(stream);
        }
    }

    private synchronized void follow(long stream) {
        Ends before = ends;
        int at = Arrays.binarySearch(before.handles, stream);
        if (at >= 0 && comesAfter(stream, before.fences[at])) {
            ends = new Ends(without(before.handles, at), without(before.fences, at));
            order.release(device, before.fences[at]);
        }
    }

    private boolean comesAfter(long stream, long fence) {
        return order.passed(device, fence)
                || (order.recordable(device, stream)
                        && order.awaitable(device, fence)
                        && DeadContext.isDone(() -> order.await(device, stream, fence)));
    }

    /// Releases the fences; no stream has ended then.
    public synchronized void close() {
        for (long fence : ends.fences) {
            order.release(device, fence);
        }
        ends = NONE;
    }
}
