package io.cistern.internal.order;

import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.spi.StreamOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.LongStream;

/// Tracks the streams of one device whose end was announced and whose handles were not reused, for allocators
/// that pass the handle of a free on to the driver.
///
/// - A block may be freed on a stream that has ended. Its handle then names no stream or, unknown to the
///   allocator, a later one. So the free is ordered after all work of the device.
/// - If the handle is reused, an allocation or a recorded use shows it: only an existing stream can ask for
///   these. Then the new stream waits, on the device, for the work of the one that had the handle before. So a
///   block of the first stream that is freed by the handle is freed after the work of both.
///
/// **Threads.** Any. [#contains] and [#opened] cost one read if no stream has ended, and make no garbage.
public final class EndedStreams {
    private final int device;
    private final StreamOrder order;

    /// Sorted. Replaced under the monitor, never changed.
    private volatile long[] handles = {};

    /// By handle; absent once the work is known to be done. Guarded by the monitor.
    private final Map<Long, End> ends = new HashMap<>();

    /// Whether [#close] was called. Guarded by the monitor.
    private boolean closed;

    /// The end of a stream's work.
    private static final class End {
        long fence;
    }

    public EndedStreams(int device, StreamOrder order) {
        this.device = device;
        this.order = order;
    }

    /// Records the end of a stream that still exists. The default streams do not end.
    public synchronized void closing(long stream) {
        if (closed || Long.compareUnsigned(stream, Streams.PER_THREAD_DEFAULT) <= 0) {
            return;
        }
        // A stream whose work is done keeps no event, since its handle may never be reused.
        ends.values().removeIf(this::isReleased);
        long[] before = handles;
        boolean cameAgain = contains(stream); // without asking for anything
        long[] after = cameAgain
                ? before
                : LongStream.concat(LongStream.of(before), LongStream.of(stream))
                        .sorted()
                        .toArray();
        End end = ends.computeIfAbsent(stream, _ -> new End());
        long former = end.fence;
        end.fence = cameAgain ? order.recordAll(device) : order.record(device, stream);
        handles = after;
        if (former != 0) {
            order.release(device, former);
        }
    }

    private boolean isReleased(End end) {
        boolean passed = order.passed(device, end.fence);
        if (passed) {
            order.release(device, end.fence);
        }
        return passed;
    }

    /// Returns whether a handle's stream has ended, and the handle has not been reused as far as is known.
    public boolean contains(long stream) {
        long[] ended = handles;
        return ended.length > 0 && Arrays.binarySearch(ended, stream) >= 0;
    }

    /// Notes that a stream exists, before the allocation or use that it asks for. It then comes after the streams
    /// that had its handle before; while a capture forbids that, it counts as ended.
    public void opened(long stream) {
        if (contains(stream)) {
            follow(stream);
        }
    }

    private synchronized void follow(long stream) {
        End end = ends.get(stream);
        long fence = end == null ? 0 : end.fence;
        if (contains(stream) && comesAfter(stream, fence)) {
            handles = LongStream.of(handles).filter(each -> each != stream).toArray();
            ends.remove(stream);
            order.release(device, fence);
        }
    }

    private boolean comesAfter(long stream, long fence) {
        return order.passed(device, fence)
                || (order.recordable(device, stream)
                        && order.awaitable(device, fence)
                        && DeadContext.isDone(() -> order.await(device, stream, fence)));
    }

    /// Releases the fences; no stream has ended then. Ends that are announced later are not recorded.
    public synchronized void close() {
        closed = true;
        ends.values().forEach(end -> order.release(device, end.fence));
        ends.clear();
        handles = new long[0];
    }
}
