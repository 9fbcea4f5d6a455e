package io.cistern.internal.order;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Graphs;
import io.cistern.spi.StreamOrder;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongPredicate;

/// Orders streams for graph memory.
///
/// A fence on a captured stream is a *point*: the nodes that the stream's next node would follow. The point has
/// passed for another captured stream as soon as all these nodes come before that stream's next node. The shape
/// of the graph shows this, and so it holds in each launch. The point has passed for all streams once the
/// capture is over, since graphs that share memory are launched in the order of their captures. Fences on other
/// streams are ordinary ones.
///
/// **Threads.** Any. A thread that allocates declares the stream, which applies to its calls until it has
/// finished.
public final class CaptureOrder implements StreamOrder {
    /// Points are below this number, fences of the other order above.
    private static final long FIRST_POINT = -(1L << 40);

    /// The most nodes visited for one answer. If a graph has more between the two streams, the block waits for
    /// the capture's end.
    private static final int MAX_NODES = 2048;

    private final Graphs graphs;
    private final StreamOrder others;
    private final LongPredicate isUnderWay;
    private final Map<Long, Point> points = new ConcurrentHashMap<>();
    private final AtomicLong last = new AtomicLong(FIRST_POINT);

    /// One number: the stream for which the thread allocates, or 0, which is never captured. Setting 0 costs
    /// less than removing the value.
    @SuppressWarnings("ThreadLocalUsage") // a thread may allocate for several graphs
    private final ThreadLocal<long[]> asking = ThreadLocal.withInitial(() -> new long[1]);

    private record Point(long captureId, List<Long> nodes) {}

    /// @param others orders streams that are not captured
    /// @param isUnderWay returns whether the capture with an id is under way
    public CaptureOrder(CudaDriver driver, StreamOrder others, LongPredicate isUnderWay) {
        this.graphs = driver.graphs();
        this.others = others;
        this.isUnderWay = isUnderWay;
    }

    /// Declares that the calling thread allocates on a captured stream, until [#asksNoMore].
    public void asksFor(long stream) {
        asking.get()[0] = stream;
    }

    /// Ends [#asksFor] of the calling thread.
    public void asksNoMore() {
        asking.get()[0] = 0;
    }

    @Override
    public long record(int device, long stream) {
        try {
            long id = captureId(device, stream);
            if (id != 0) {
                long fence = last.decrementAndGet();
                points.put(fence, new Point(id, graphs.captureDependencies(device, stream)));
                return fence;
            }
        } catch (CudaException | OutOfMemoryError untold) {
            // Then the fence passes after the captures.
        }
        return others.record(device, stream);
    }

    private long captureId(int device, long stream) {
        try {
            return graphs.captureId(device, stream);
        } catch (CudaException notCaptured) {
            return 0;
        }
    }

    @Override
    public long recordAll(int device) {
        return others.recordAll(device);
    }

    @Override
    public boolean passed(int device, long fence) {
        if (fence >= FIRST_POINT) {
            return others.passed(device, fence);
        }
        try {
            Point point = points.get(fence);
            return point == null || !isUnderWay.test(point.captureId) || comesBeforeAsker(device, point);
        } catch (CudaException | OutOfMemoryError untold) {
            return false;
        }
    }

    private boolean comesBeforeAsker(int device, Point point) {
        long stream = asking.get()[0];
        return stream != 0
                && captureId(device, stream) == point.captureId
                && areBefore(device, point.nodes, graphs.captureDependencies(device, stream));
    }

    /// Returns whether the wanted nodes are among the ends, or come before them.
    private boolean areBefore(int device, List<Long> wanted, List<Long> ends) {
        Set<Long> missing = new HashSet<>(wanted);
        Set<Long> seen = new HashSet<>(ends);
        Deque<Long> open = new ArrayDeque<>(ends);
        while (!missing.isEmpty() && !open.isEmpty() && seen.size() <= MAX_NODES) {
            long node = open.removeFirst();
            if (missing.remove(node)) {
                continue; // no wanted node comes before it: they were all ends of one stream
            }
            graphs.dependencies(device, node).stream().filter(seen::add).forEach(open::addLast);
        }
        return missing.isEmpty();
    }

    @Override
    public boolean awaitable(int device, long fence) {
        return fence >= FIRST_POINT ? others.awaitable(device, fence) : passed(device, fence);
    }

    @Override
    public void await(int device, long stream, long fence) {
        if (fence >= FIRST_POINT) {
            others.await(device, stream, fence);
        } else {
            requirePassed(device, fence);
        }
    }

    @Override
    public void synchronize(int device, long fence) {
        if (fence >= FIRST_POINT) {
            others.synchronize(device, fence);
        } else {
            requirePassed(device, fence);
        }
    }

    private void requirePassed(int device, long fence) {
        if (!passed(device, fence)) {
            throw new CudaException(
                    DriverCall.EVENT_SYNCHRONIZE,
                    CudaResult.STREAM_CAPTURE_UNSUPPORTED.code(),
                    "device=" + device + ", a point in a capture under way");
        }
    }

    @Override
    public void release(int device, long fence) {
        if (fence >= FIRST_POINT) {
            others.release(device, fence);
        } else {
            points.remove(fence);
        }
    }
}
