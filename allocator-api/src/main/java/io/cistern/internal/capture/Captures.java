package io.cistern.internal.capture;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
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
import io.cistern.internal.routing.RouteExit;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The captures of one [io.cistern.DeviceMemory] that are under way, and the memory of graphs that are gone.
///
/// 1. While any stream of a device is captured, all routes of the device are suspended, so that each
/// allocation comes here and the stream is asked which capture it is in. At other times the path of an
/// allocation knows nothing of captures. Frees go past a [CaptureExit] meanwhile.
/// 2. A stream in a capture is served from that capture's [GraphBlocks], all others as ever; driver calls are
/// [sheltered][Graphs#shelter], so that neither disturbs the other.
/// 3. The driver tells when a graph and its executables are gone, on a thread of its own that may call
/// nothing. The memory goes back at the next occasion: a capture that begins or ends, a trim, or memory
/// running out; not while anything is captured, since that needs a fence over the whole context.
///
/// **Threads.** Any. Captures begin and end one at a time, under a monitor that covers no wait. One thread at
/// a time gives memory back, which may wait for the GPU: nobody waits for that thread, which does what others
/// ask for meanwhile. A capture may begin beside it; what the driver refuses then is done after the capture.
public final class Captures implements CaptureRoutes {
    private static final Consumer<Route> RESUME = Route::resume;

    /// Made before it is wanted, as that is: what ends a capture looks for graphs that are gone.
    private static final Consumer<Runnable> OR_LOG = Captures::orLog;

    private final Registry registry;
    private final Router router;
    private final CudaDriver driver;
    private final Graphs graphs;
    private final EventStreams eventStreams;
    private final EventOrder order;

    /// Replaced under the monitor. An array, so that a free looks at them without the Java heap.
    private volatile StreamCapture[] underWay = {};

    /// One for each that is under way, made when it began, to stand in place of the present array when one
    /// ends: so a capture ends in a full Java heap too. Guarded by the monitor.
    private final Deque<StreamCapture[]> shorter = new ArrayDeque<>();

    private final NodeQueue<GraphBlocks> gone = new NodeQueue<>();
    private final NodeQueue<Runnable> later = new NodeQueue<>();
    private final ClosedGraphs closedGraphs;
    private volatile boolean closed;

    /// Held by the thread that gives memory back.
    private final ReentrantLock collecting = new ReentrantLock();

    /// How often threads have asked for it.
    private final AtomicLong collections = new AtomicLong();

    public Captures(Registry registry, EventOrder order, EventStreams eventStreams) {
        this.registry = registry;
        this.router = registry.router();
        this.driver = registry.driver();
        this.graphs = driver.graphs();
        this.eventStreams = eventStreams;
        this.order = order;
        this.closedGraphs = new ClosedGraphs(registry.environment().deviceCount());
        router.routes().captures(this);
    }

    Registry registry() {
        return registry;
    }

    Router router() {
        return router;
    }

    EventStreams eventStreams() {
        return eventStreams;
    }

    public GraphBlocks newMemory() {
        return new GraphBlocks(this, new CaptureOrder(driver, order, this::isUnderWay));
    }

    private boolean isUnderWay(long captureId) {
        for (StreamCapture capture : underWay) {
            if (capture.mayBe(captureId)) {
                return true;
            }
        }
        return false;
    }

    /// A capture begins, or has just begun.
    public StreamCapture begin(int device, long stream, GraphBlocks into) {
        collect();
        return announce(device, stream, into);
    }

    private synchronized StreamCapture announce(int device, long stream, GraphBlocks into) {
        StreamCapture capture = new StreamCapture(graphs, device, stream, into, closedGraphs);
        StreamCapture[] present = underWay;
        StreamCapture[] more = Arrays.copyOf(present, present.length + 1);
        more[present.length] = capture;
        shorter.push(new StreamCapture[present.length]);
        Consumer<Route> suspending = this::suspend;
        into.use();
        graphs.shelter(device);
        underWay = more;
        try {
            router.routes().forEach(device, suspending);
        } catch (Throwable failure) {
            isOver(capture);
            into.release();
            throw failure;
        }
        return capture;
    }

    /// The capture that was announced for a stream.
    ///
    /// @throws IllegalStateException if none was
    public StreamCapture announced(int device, long stream) {
        return Arrays.stream(underWay)
                .filter(capture -> capture.device == device && capture.origin == stream)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no capture of stream 0x" + Long.toHexString(stream)
                        + " on device " + device + " was announced"));
    }

    /// A capture has ended.
    ///
    /// @param graph what came of it, or 0
    /// @throws CudaException if the driver won't tell of the graph's end: its memory is kept for good
    public void end(StreamCapture capture, long graph) {
        end(capture, graph, false);
    }

    /// Ends a capture whose graph nobody has yet. If the driver won't tell of the graph's end, the graph is
    /// given up.
    public void endWithNew(StreamCapture capture, long graph) {
        end(capture, graph, true);
    }

    private void end(StreamCapture capture, long graph, boolean isNew) {
        isOver(capture);
        try {
            if (graph != 0) {
                graphs.retain(capture.device, graph, capture.whenGone);
            } else {
                capture.memory.release();
            }
        } catch (CudaException | OutOfMemoryError refused) {
            if (isNew) {
                capture.memory.giveUp(capture, graph);
                capture.memory.release();
            }
            throw refused;
        } finally {
            collect();
        }
    }

    private synchronized void isOver(StreamCapture capture) {
        StreamCapture[] present = underWay;
        int at = 0;
        while (at < present.length && present[at] != capture) {
            at++;
        }
        if (at == present.length) {
            throw new IllegalStateException("the capture has ended already");
        }
        StreamCapture[] left = shorter.pop();
        while (left.length >= present.length) { // of one that failed to begin
            left = shorter.pop();
        }
        System.arraycopy(present, 0, left, 0, at);
        System.arraycopy(present, at + 1, left, at, left.length - at);
        underWay = left;
        graphs.unshelter(capture.device);
        if (!isOn(capture.device)) {
            router.routes().forEach(capture.device, RESUME);
        }
    }

    /// Refuses what can't be done beside a capture.
    ///
    /// @param what can't be done else
    /// @throws IllegalStateException if a stream of the device is captured
    public void requireNone(int device, String what) {
        if (isOn(device)) {
            throw new IllegalStateException(
                    what + " while a stream of device " + device + " is captured: end the capture first");
        }
    }

    public boolean isOn(int device) {
        for (StreamCapture capture : underWay) {
            if (capture.device == device) {
                return true;
            }
        }
        return false;
    }

    /// Whether a route leads to memory that all captures under way on its device share, so that it does not
    /// matter in which of them a stream is.
    private boolean isOfAll(Route route) {
        for (StreamCapture capture : underWay) {
            if (capture.device == route.device() && !capture.memory.owns(route)) {
                return false;
            }
        }
        return true;
    }

    boolean isCapturedInto(GraphBlocks memory) {
        return Arrays.stream(underWay).anyMatch(capture -> capture.memory == memory);
    }

    /// Sends the frees of a route past other code from now on; while streams are captured, behind what is in
    /// front of every route then.
    synchronized void freeThrough(Route route, DeviceAllocator exit) {
        route.freeThrough(exit);
        opened(route);
    }

    private void suspend(Route route) {
        route.suspend(new CaptureExit(route, route.usualExit()));
    }

    @Override
    public void opened(Route route) {
        if (isOn(route.device())) {
            suspend(route);
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

    /// The memory of the graph that a stream is captured into, or null.
    ///
    /// @throws UnusableStreamException if it is in a capture that nobody announced
    /// @throws CudaException if the driver won't tell
    public @Nullable GraphBlocks memoryOf(int device, long stream) {
        StreamCapture capture = isOn(device) ? find(device, stream) : null;
        return capture == null ? null : capture.memory;
    }

    /// Whether it is certain that a stream is captured into a graph with some memory.
    boolean isInto(GraphBlocks memory, int device, long stream) {
        try {
            return memoryOf(device, stream) == memory;
        } catch (UnusableStreamException | CudaException untold) {
            return false;
        }
    }

    @Override
    public boolean freeCaptured(Route route, long address, long byteSize, long stream) {
        try {
            StreamCapture capture = find(route.device(), stream);
            if (capture == null) {
                return false;
            }
            if (!capture.memory.owns(route)) {
                return capture.memory.keep(route, address, byteSize);
            }
        } catch (UnusableStreamException unannounced) {
            keep(route, address, byteSize); // that graph may use it
            throw unannounced;
        } catch (CudaException untold) {
            keep(route, address, byteSize);
            return true;
        } catch (OutOfMemoryError full) {
            router.adoptAgain(route, address, byteSize);
            throw full;
        }
        route.usualExit().free(address, byteSize, route.device(), stream);
        return true;
    }

    @Override
    public void keep(Route route, long address, long byteSize) {
        try {
            keepWithAny(route, address, byteSize);
        } catch (OutOfMemoryError full) {
            router.adoptAgain(route, address, byteSize);
            throw full;
        }
    }

    private void keepWithAny(Route route, long address, long byteSize) {
        for (StreamCapture capture : underWay) {
            if (capture.device == route.device() && capture.memory.keep(route, address, byteSize)) {
                return;
            }
        }
        GraphBlocks ofNoGraph = newMemory();
        ofNoGraph.use();
        ofNoGraph.keep(route, address, byteSize);
        ofNoGraph.release();
        collect();
    }

    @Override
    public long allocate(Route route, long byteSize, long stream) {
        StreamCapture capture = find(route.device(), stream);
        if (capture == null) {
            return router.allocateThrough(route, byteSize, stream);
        }
        try {
            return capture.memory.allocate(route, byteSize, stream);
        } catch (DeviceOutOfMemoryException first) {
            if (giveBackIdle(route.device()) == 0) {
                throw first;
            }
            return capture.memory.allocate(route, byteSize, stream);
        }
    }

    /// The capture that a stream is in, or null.
    ///
    /// @throws UnusableStreamException if it is in one that nobody announced
    /// @throws CudaException if the driver won't tell
    private @Nullable StreamCapture find(int device, long stream) {
        long id = StreamCapture.idOf(graphs, device, stream);
        if (id == 0) {
            return null;
        }
        for (StreamCapture capture : underWay) {
            if (capture.id() == id) {
                return capture;
            }
        }
        if (StreamCapture.idOf(graphs, device, stream) != id) { // it has ended since
            return find(device, stream);
        }
        throw new UnusableStreamException(
                device,
                stream,
                "it is captured into a graph, which was not announced: call GraphCapture.announce first");
    }

    /// Has the usual allocators give back what is idle, without waiting.
    private long giveBackIdle(int device) {
        long returned = 0;
        for (OpenAllocator allocator : registry.all()) {
            returned += allocator.trim(device, 0, TrimMode.WITHOUT_WAITING).returnedBytes();
        }
        return returned;
    }

    /// A live block is used on another stream than that of its free.
    public void usedElsewhere(long address) {
        for (StreamCapture capture : underWay) {
            capture.memory.usedElsewhere(address);
        }
    }

    /// The graphs of some memory are gone. Calls no driver.
    void gone(NodeQueue.Node<GraphBlocks> ended) {
        gone.add(ended);
    }

    /// Does something that a capture forbids, now or when none is under way. To put it off needs no Java heap.
    ///
    /// @param action made for this call
    public void whenNoneIsUnderWay(NodeQueue.Node<Runnable> action) {
        if (underWay.length == 0) {
            action.value().run();
            return;
        }
        later.add(action);
        if (underWay.length == 0) { // the last one has ended meanwhile, and may not have seen it
            collect();
        }
    }

    /// Gives the memory of graphs back that are gone, and does what had to wait for the end of captures. This
    /// happens in calls that are about something else, so failures are logged. If another thread is at it, it
    /// is left to that one.
    ///
    /// @return whether there was any
    public boolean collect() {
        if (collecting.isHeldByCurrentThread()) {
            return false; // in the course of it, which goes on until nothing is left
        }
        boolean any = false;
        collections.incrementAndGet();
        // Ends: each turn but the first is for another thread that found the lock taken.
        while (collecting.tryLock()) {
            long seen;
            try {
                seen = collections.get();
                any |= collect(OR_LOG);
            } finally {
                collecting.unlock();
            }
            if (collections.get() == seen) {
                break;
            }
        }
        return any;
    }

    private boolean collect(Consumer<Runnable> doing) {
        boolean any = false;
        while (underWay.length == 0) {
            NodeQueue.Node<Runnable> action = later.poll();
            NodeQueue.Node<GraphBlocks> ended = action == null ? gone.peek() : null;
            if (action != null) {
                doing.accept(action.value());
            } else if (ended == null || !closes(ended)) {
                return any;
            }
            any = true;
        }
        return any;
    }

    private static void orLog(Runnable action) {
        try {
            action.run();
        } catch (Throwable failure) {
            log(failure);
        }
    }

    /// Gives some memory back, or what the driver allows: the rest at the next occasion.
    private boolean closes(NodeQueue.Node<GraphBlocks> ended) {
        try {
            ended.value().close(this::streamBehindAll);
            gone.poll(); // only now: what fails in between is not forgotten
            return true;
        } catch (CudaException | OutOfMemoryError refused) {
            gone.poll();
            gone.add(ended); // others come first
            if (refused instanceof OutOfMemoryError full) {
                log(full);
            }
            return false;
        }
    }

    private static void log(Throwable failure) {
        try {
            System.getLogger(Captures.class.getName())
                    .log(Level.WARNING, "what had to wait for the end of a capture failed", failure);
        } catch (OutOfMemoryError ofTheHeap) {
            // Nobody who could be told has any.
        }
    }

    /// A stream that is past all work of its device's context when it is past its present end. Where the driver
    /// refuses one, the host waits.
    public long streamBehindAll(int device) {
        long fence = order.recordAll(device);
        try {
            return eventStreams.after(device, fence);
        } catch (CudaException refusal) {
            order.synchronize(device, fence);
            return 0;
        } finally {
            order.release(device, fence);
        }
    }

    /// The program has closed the graph of a capture. If this is closed, nobody comes by later: then the memory
    /// goes back now.
    public void graphClosed(StreamCapture capture) {
        closedGraphs.closed(capture);
        if (closed) {
            awaitClosedGraphs(capture.device);
            collect();
        }
    }

    /// Waits for the driver to tell of graphs that the program has closed: first for their launches. Without the
    /// Java heap, since nobody closes this again.
    private void awaitClosedGraphs(int device) {
        if (!closedGraphs.anyUntold(device)) {
            return;
        }
        try {
            awaitAllWork(device);
        } catch (CudaException | OutOfMemoryError refused) {
            return; // the driver may not tell either
        }
        closedGraphs.awaitTold(device);
    }

    private void awaitAllWork(int device) {
        long fence = order.recordAll(device);
        try {
            order.synchronize(device, fence);
        } finally {
            order.release(device, fence);
        }
    }

    /// Ends what was made here; announced captures that never ended are given up. The memory of graphs that the
    /// program has closed goes back. That of others stays until they are gone.
    public void close() {
        closed = true;
        Failures failures = new Failures();
        List.of(underWay)
                .forEach(capture -> failures.gather(() -> {
                    isOver(capture);
                    capture.memory.release();
                }));
        for (int device = 0; device < registry.environment().deviceCount(); device++) {
            awaitClosedGraphs(device);
        }
        collecting.lock(); // what another thread gives back is back when this returns
        try {
            failures.gather(() -> collect(failures::gather));
            failures.gather(() -> collect(failures::gather)); // what the driver refused: nobody tries it later
        } finally {
            collecting.unlock();
        }
        failures.rethrow();
    }

    /// Where the frees of a route go while streams of its device are captured: a block from outside that is
    /// freed on a captured stream is kept for the graph.
    private final class CaptureExit extends RouteExit {
        private final Route route;
        private final DeviceAllocator usual;

        CaptureExit(Route route, DeviceAllocator usual) {
            this.route = route;
            this.usual = usual;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            if (isOfAll(route) || !freeCaptured(route, address, byteSize, stream)) {
                usual.free(address, byteSize, device, stream);
            }
        }
    }
}
