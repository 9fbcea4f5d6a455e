package io.cistern.internal.capture;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Graphs;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.names.Failures;
import io.cistern.internal.order.CaptureOrder;
import io.cistern.internal.order.EventOrder;
import io.cistern.internal.order.EventStreams;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.CaptureRoutes;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.TrimMode;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Serves captured streams of one [io.cistern.DeviceMemory], and releases graph memory once its graphs are
/// gone.
///
/// 1. While any stream of a device is captured, all routes of the device are suspended, so each allocation
///    or free comes here, and this class asks the driver which capture the stream is in. At other times,
///    allocations and frees do not check for captures.
/// 2. The [GraphBlocks] of a capture serve its streams; all other streams are served as usual. Driver calls are
/// [sheltered][Graphs#shelter], so that they and the captures don't disturb each other.
/// 3. The driver reports when a graph and its executables are gone, on its own thread, which must not call
///    the driver. The memory is released at the next opportunity: when a capture begins or ends, at a trim,
///    or when memory runs out. During a capture, memory that needs a context-wide fence is retained.
///
/// **Threads.** Any. Captures begin and end one at a time, under a monitor that covers no wait. One thread
/// at a time releases memory, which may wait for the GPU. Only [#close] waits for that thread, which also
/// does the work that other threads request. If a capture begins and the driver refuses a step, the step is
/// retried after the capture.
public final class Captures implements CaptureRoutes {
    private static final Consumer<Route> SUSPEND = Route::suspend;
    private static final Consumer<Route> RESUME = Route::resume;

    /// Made in advance, like [#RESUME], since it runs when a capture ends, possibly with a full Java heap.
    private static final Consumer<Throwable> LOGGING = Captures::log;

    private final Registry registry;
    private final Router router;
    private final CudaDriver driver;
    private final Graphs graphs;
    private final EventStreams eventStreams;
    private final EventOrder order;

    /// The newest of the captures under way. [StreamCapture#older] links them, so that ending a capture and
    /// searching them in a free need no Java heap. Written under the monitor, read without it.
    private volatile @Nullable StreamCapture newest;

    private final NodeQueue<GraphBlocks> gone = new NodeQueue<>();

    /// Memory of graphs that are gone, part of which the driver refused to free.
    private final NodeQueue<GraphBlocks> refused = new NodeQueue<>();

    private final NodeQueue<Runnable> later = new NodeQueue<>();
    private final ClosedGraphs closedGraphs;
    private final BlockHolders holders;
    private volatile boolean closed;

    /// Held by the thread that gives memory back.
    private final ReentrantLock collecting = new ReentrantLock();

    /// The number of graph memories made.
    private final AtomicLong memories = new AtomicLong();

    /// The number of calls to [#collect()].
    private final AtomicLong collections = new AtomicLong();

    public Captures(Registry registry, EventOrder order, EventStreams eventStreams) {
        this.registry = registry;
        this.router = registry.router();
        this.driver = registry.driver();
        this.graphs = driver.graphs();
        this.eventStreams = eventStreams;
        this.order = order;
        this.closedGraphs = new ClosedGraphs(registry.environment().deviceCount());
        this.holders = new BlockHolders(router);
        router.routes().captures(this);
    }

    public GraphBlocks newMemory() {
        return new GraphBlocks(
                registry,
                eventStreams,
                new CaptureOrder(driver, order, this::isUnderWay),
                holders,
                memories.incrementAndGet(),
                gone);
    }

    private boolean isUnderWay(long captureId) {
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            if (capture.mayBe(captureId)) {
                return true;
            }
        }
        return false;
    }

    /// Announces a capture that is about to begin, and gives memory back first.
    public StreamCapture begin(int device, long stream, GraphBlocks into) {
        collect();
        return announce(device, stream, into);
    }

    /// Announces a capture that begins, or has just begun. Gives nothing back, since waiting for the device would
    /// invalidate a capture that has begun.
    public synchronized StreamCapture announce(int device, long stream, GraphBlocks into) {
        router.opened(device, stream);
        StreamCapture capture = new StreamCapture(graphs, device, stream, into, closedGraphs);
        into.use(capture);
        graphs.shelter(device);
        capture.older = newest;
        newest = capture;
        try {
            router.routes().forEach(device, SUSPEND);
        } catch (Throwable failure) {
            isOver(capture);
            into.release();
            throw failure;
        }
        return capture;
    }

    /// Returns the capture that was announced for a stream.
    ///
    /// @throws IllegalStateException if none was
    public StreamCapture announced(int device, long stream) {
        StreamCapture capture = ofOrigin(device, stream);
        if (capture == null) {
            throw new IllegalStateException(
                    "no capture of stream 0x" + Long.toHexString(stream) + " on device " + device + " was announced");
        }
        return capture;
    }

    private @Nullable StreamCapture ofOrigin(int device, long stream) {
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            if (capture.device == device && capture.origin == stream && !capture.isOver) {
                return capture;
            }
        }
        return null;
    }

    /// Announces that a capture has ended.
    ///
    /// @param graph its graph, or 0
    /// @throws CudaException if the driver won't report the graph's end; its memory is then never released
    public void end(StreamCapture capture, long graph) {
        end(capture, graph, false);
    }

    /// Announces the end of a capture whose graph is not yet in use. If the driver won't report the graph's
    /// end, this gives the graph up.
    public void endWithNew(StreamCapture capture, long graph) {
        end(capture, graph, true);
    }

    private void end(StreamCapture capture, long graph, boolean isNew) {
        isOver(capture);
        try {
            if (graph != 0) {
                graphs.retain(capture.device, graph, capture.whenGone);
            } else {
                capture.release();
            }
        } catch (CudaException | OutOfMemoryError refused) {
            if (isNew) {
                giveUp(capture, graph);
                capture.release();
            }
            throw refused;
        } finally {
            collect();
        }
    }

    /// Destroys a graph that will not be launched, once it has no live block.
    public void giveUp(StreamCapture capture, long graph) {
        capture.memory.giveUp(capture, capture.destroying(graph));
    }

    private synchronized void isOver(StreamCapture capture) {
        StreamCapture newer = null;
        StreamCapture at = newest;
        while (at != null && at != capture) {
            newer = at;
            at = at.older;
        }
        if (at == null) {
            throw new IllegalStateException("the capture has ended already");
        }
        if (newer == null) {
            newest = capture.older;
        } else {
            newer.older = capture.older;
        }
        capture.end();
        graphs.unshelter(capture.device);
        if (!isOn(capture.device)) {
            router.routes().forEach(capture.device, RESUME);
        }
    }

    /// Refuses an action that is impossible during a capture.
    ///
    /// @param what the action, for the message
    /// @throws IllegalStateException if a stream of the device is captured
    public void requireNone(int device, String what) {
        if (isOn(device)) {
            throw new IllegalStateException(
                    what + " while a stream of device " + device + " is captured: end the capture first");
        }
    }

    /// Returns whether the announced capture of a stream has not ended.
    public boolean isOrigin(int device, long stream) {
        return ofOrigin(device, stream) != null;
    }

    public boolean isOn(int device) {
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            if (capture.device == device) {
                return true;
            }
        }
        return false;
    }

    /// Returns whether a route leads to memory that all captures on its device share. Then the stream's
    /// capture does not matter.
    private boolean isOfAll(Route route) {
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            if (capture.device == route.device() && !capture.memory.owns(route)) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void opened(Route route) {
        if (isOn(route.device())) {
            route.suspend();
        }
    }

    @Override
    public boolean isCaptured(int device, long stream) {
        try {
            return isOn(device) && StreamCapture.idOf(graphs, device, stream) != 0;
        } catch (CudaException untold) {
            return true;
        }
    }

    /// Returns the memory of the graph that a stream is captured into, or null.
    ///
    /// @throws UnusableStreamException if the stream is in an unannounced capture
    /// @throws CudaException if the driver doesn't report it
    public @Nullable GraphBlocks memoryOf(int device, long stream) {
        StreamCapture capture = isOn(device) ? find(device, stream) : null;
        return capture == null ? null : capture.memory;
    }

    /// On a stream that has ended, the block is kept, since a later stream of that handle may be captured.
    @Override
    public boolean keeps(Route route, long address, long stream) {
        if (isOn(route.device()) && !isOfAll(route)) {
            if (router.hasEnded(route.device(), stream)) {
                if (keepWithAll(route, address)) {
                    return true;
                }
            } else {
                CapturedFree captured = freeCaptured(route, address, stream);
                if (captured != CapturedFree.NOT_CAPTURED) {
                    return captured == CapturedFree.KEPT;
                }
            }
        }
        return keepsOwn(address, stream);
    }

    @Override
    public void usedToo(Route route, long address, long stream) {
        StreamCapture capture = find(route.device(), stream);
        if (capture != null) {
            holders.own(address, capture.memory);
        }
    }

    @Override
    public CapturedFree freeCaptured(Route route, long address, long stream) {
        StreamCapture capture;
        try {
            capture = find(route.device(), stream);
        } catch (UnusableStreamException unannounced) {
            keep(route, address); // that graph may use it
            throw unannounced;
        } catch (CudaException untold) {
            keep(route, address);
            return CapturedFree.KEPT;
        }
        if (capture == null) {
            return CapturedFree.NOT_CAPTURED;
        }
        GraphBlocks memory = capture.memory;
        if (memory.owns(address, route)) {
            return keepsOwn(address, stream) ? CapturedFree.KEPT : CapturedFree.OWN;
        }
        return memory.keep(address) ? CapturedFree.KEPT : CapturedFree.NOT_CAPTURED;
    }

    /// Keeps a block if a graph uses it at each launch.
    private boolean keepsOwn(long address, long stream) {
        List<GraphBlocks> owners = holders.owners(address);
        for (GraphBlocks owner : owners) {
            if (owner.keepsOwn(address, stream)) {
                return true;
            }
        }
        if (!owners.isEmpty()) {
            holders.forget(address);
        }
        return false;
    }

    @Override
    public void keep(Route route, long address) {
        if (!keepWithAll(route, address)) {
            keepForNone(address);
        }
    }

    /// Keeps a block for all captures on its device, one after the other.
    private boolean keepWithAll(Route route, long address) {
        StreamCapture first = newest;
        for (StreamCapture capture = first; capture != null; capture = capture.older) {
            if (capture.device == route.device()) {
                holders.own(address, capture.memory);
            }
        }
        for (StreamCapture capture = first; capture != null; capture = capture.older) {
            if (capture.device == route.device() && capture.memory.keep(address)) {
                return true;
            }
        }
        return false;
    }

    /// Keeps a block until memory of graphs is collected. This does not happen here, since closing an allocator waits
    /// for the free that this is part of.
    private void keepForNone(long address) {
        GraphBlocks ofNoGraph = newMemory();
        ofNoGraph.use();
        try {
            ofNoGraph.keep(address);
        } finally {
            ofNoGraph.release();
        }
    }

    @Override
    public @Nullable String keeper(long address) {
        GraphBlocks keeper = holders.keeper(address);
        return keeper == null ? null : keeper.toString();
    }

    @Override
    public long allocate(Route route, long byteSize, long stream) {
        router.opened(route.device(), stream);
        StreamCapture capture = find(route.device(), stream);
        if (capture == null) {
            return router.allocateThrough(route, byteSize, stream);
        }
        try {
            return capture.memory.allocate(route, byteSize, stream);
        } catch (DeviceOutOfMemoryException first) {
            if (first.canNeverFit() || (!collect() && (first.isByLimit() || giveBackIdle(route.device()) == 0))) {
                throw first;
            }
            return capture.memory.allocate(route, byteSize, stream);
        }
    }

    /// Returns the capture that a stream is in, or null.
    ///
    /// @throws UnusableStreamException if that capture was not announced
    /// @throws CudaException if the driver doesn't report it
    private @Nullable StreamCapture find(int device, long stream) {
        long id = StreamCapture.idOf(graphs, device, stream);
        if (id == 0) {
            return null;
        }
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            if (capture.id() == id) {
                return capture;
            }
        }
        if (StreamCapture.idOf(graphs, device, stream) != id) { // it has ended since
            return find(device, stream);
        }
        throw new UnusableStreamException(
                device, stream, "it is in a capture that was not announced: call GraphCapture.announce first");
    }

    /// Makes the usual allocators give back idle memory, without waiting.
    private long giveBackIdle(int device) {
        long returned = 0;
        for (OpenAllocator allocator : registry.all()) {
            returned += allocator.trim(device, 0, TrimMode.WITHOUT_WAITING).returnedBytes();
        }
        return returned;
    }

    /// Notes that a live block is used on a stream other than that of its free.
    public void usedElsewhere(long address) {
        for (StreamCapture capture = newest; capture != null; capture = capture.older) {
            capture.memory.usedElsewhere(address);
        }
    }

    /// Runs an action that a capture forbids, now or when no capture is under way. Postponing it needs no Java
    /// heap.
    ///
    /// @param action made for this call
    public void whenNoneIsUnderWay(NodeQueue.Node<Runnable> action) {
        if (newest == null) {
            try {
                action.value().run();
                return;
            } catch (CudaException refusal) {
                if (refusal.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                    throw refusal;
                } // a new capture has begun
            }
        }
        later.add(action);
        if (newest == null) { // the last capture has just ended, and may have missed the action
            collect();
        }
    }

    /// Gives back the memory of graphs that are gone, and runs the actions that waited for the end of
    /// captures. Failures are logged, since callers do this on the side. If another thread is
    /// already collecting, it does this call's work, too.
    ///
    /// @return whether there was anything to do
    public boolean collect() {
        if (collecting.isHeldByCurrentThread()) {
            return false; // an action called this, and the loop that runs it continues until nothing is left
        }
        boolean any = false;
        collections.incrementAndGet();
        // The loop ends: each turn but the first is for another thread that found the lock taken.
        while (collecting.tryLock()) {
            long seen;
            try {
                seen = collections.get();
                any |= collect(LOGGING);
            } finally {
                collecting.unlock();
            }
            if (collections.get() == seen) {
                break;
            }
        }
        return any;
    }

    /// Returns whether memory is still held for graphs that are gone, or will be after the work of a
    /// device. Returns false during captures, which prevent its release.
    public boolean awaitsGraphs(int device) {
        return newest == null && (closedGraphs.anyUntold(device) || gone.peek() != null);
    }

    /// Waits for the end of the graphs of a device that the program has closed, and gives their memory back.
    ///
    /// @return whether there was anything to do
    public boolean collectClosed(int device) {
        awaitClosedGraphs(device);
        return collect();
    }

    /// Collects as [#collect()] does, including graphs that the program has closed and whose work has
    /// ended. The driver reports their end slightly later, so this waits briefly for the reports.
    public boolean collectFinished() {
        for (int device = 0; device < registry.environment().deviceCount(); device++) {
            if (newest == null) {
                closedGraphs.awaitTold(device, ClosedGraphs.SOON_MILLIS);
            }
        }
        return collect();
    }

    private boolean collect(Consumer<Throwable> failed) {
        boolean any = false;
        while (newest == null) {
            NodeQueue.Node<Runnable> action = later.poll();
            if (action == null || !isOver(action, failed)) {
                break;
            }
            any = true;
        }
        return closeGone() || any;
    }

    /// Runs an action that had to wait.
    ///
    /// @return false if it has to wait again, since a capture has begun
    private boolean isOver(NodeQueue.Node<Runnable> action, Consumer<Throwable> failed) {
        try {
            action.value().run();
        } catch (Throwable failure) {
            if (failure instanceof CudaException refusal && refusal.result() == CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                later.add(action);
                return false;
            }
            failed.accept(failure);
        }
        return true;
    }

    /// Gives back the memory of graphs that are gone. A release that the driver refuses during a capture is
    /// retried after it.
    private boolean closeGone() {
        while (newest == null) {
            NodeQueue.Node<GraphBlocks> again = refused.poll();
            if (again == null) {
                break;
            }
            gone.add(again);
        }
        boolean any = false;
        for (var ended = gone.peek(); ended != null; ended = gone.peek()) {
            boolean closed = closes(ended.value());
            gone.poll(); // only now, so that an earlier failure does not lose it
            if (!closed) {
                refused.add(ended);
            }
            any |= closed;
        }
        return any;
    }

    /// Releases one graph memory as far as the driver allows.
    private boolean closes(GraphBlocks ended) {
        try {
            ended.close();
            return true;
        } catch (CudaException refusal) {
            return false;
        } catch (OutOfMemoryError full) {
            log(full);
            return false;
        }
    }

    private static void log(Throwable failure) {
        try {
            System.getLogger(Captures.class.getName())
                    .log(Level.WARNING, "work that was deferred to the end of a capture failed", failure);
        } catch (OutOfMemoryError ofTheHeap) {
            // Logging needs Java heap.
        }
    }

    /// See [EventStreams#behindAll].
    public long streamBehindAll(int device) {
        return eventStreams.behindAll(device);
    }

    /// Called when the program has closed the graph of a capture. If this object is closed, no later call
    /// collects, so the memory is released now.
    ///
    /// @param destroying destroys the graph
    /// @param wasLaunched false if no launch can have allocated the graph's memory: then the driver would give the
    ///     addresses of its blocks to the next graph, so this graph is kept until its blocks are freed
    public void graphClosed(StreamCapture capture, Runnable destroying, boolean wasLaunched) {
        if (!wasLaunched) {
            capture.release(); // first, or the driver's thread may still be in it when this collects
            capture.memory.giveUp(capture, destroying);
            collect();
            return;
        }
        CudaException refusal = refusal(destroying);
        if (refusal != null) {
            if (!refusal.result().endsContext()) {
                throw refusal;
            }
            capture.release(); // the graph went with its context, which the driver does not report
            collect();
            return;
        }
        closedGraphs.closed(capture);
        if (closed) {
            collectClosed(capture.device);
        }
    }

    private static @Nullable CudaException refusal(Runnable destroying) {
        try {
            destroying.run();
            return null;
        } catch (CudaException refusal) {
            return refusal;
        }
    }

    /// Called when a graph is of no use, since the program has no executable of it.
    public void graphFailed(StreamCapture capture, long graph) {
        graphClosed(capture, capture.destroying(graph), false);
    }

    /// Waits for the launches of graphs that the program has closed, and then until the driver has reported
    /// their end. It needs no Java heap, since it would not be called again.
    private void awaitClosedGraphs(int device) {
        if (!closedGraphs.anyUntold(device)) {
            return;
        }
        try {
            eventStreams.awaitAllWork(device);
        } catch (CudaException | OutOfMemoryError refused) {
            return; // the driver may not report it, either
        }
        closedGraphs.awaitTold(device, ClosedGraphs.LATEST_MILLIS);
    }

    /// Gives up announced captures that never ended, and gives back the memory of graphs that the program has
    /// closed. The memory of other graphs stays until they are gone.
    public void close() {
        closed = true;
        Failures failures = new Failures();
        for (StreamCapture capture = newest; capture != null; capture = newest) {
            StreamCapture ending = capture;
            failures.gather(() -> {
                isOver(ending);
                ending.release();
            });
        }
        for (int device = 0; device < registry.environment().deviceCount(); device++) {
            awaitClosedGraphs(device);
        }
        collecting.lock(); // waits until another thread has released its memory
        try {
            failures.gather(() -> collect(failures::add));
            failures.gather(() -> collect(failures::add)); // again, after refusals, since nothing retries later
        } finally {
            collecting.unlock();
        }
        failures.rethrow();
    }
}
