package io.cistern.internal.capture;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.events.Events;
import io.cistern.internal.order.CaptureOrder;
import io.cistern.internal.order.EventStreams;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.registry.Registry;
import io.cistern.internal.routing.Budgets;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.Router;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.GraphAllocator;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongPredicate;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// The blocks of one [io.cistern.graph.GraphMemory]: those of private allocators, and kept blocks of others.
///
/// **Threads.** Any.
public final class GraphBlocks {
    /// Made while the block still has its owner record.
    private static final Events.Factory<Router> COMPLETED = (router, device, address, _, _, _) -> router.ofLive(
            address, (at, byteSize, route) -> new MemoryEvent.FreeCompleted(route.toString(), device, at, byteSize));

    private final Registry registry;
    private final Router router;
    private final EventStreams eventStreams;
    private final CaptureOrder order;
    private final long number;

    /// The private allocators, by the usual allocator.
    private final Map<OpenAllocator, OpenAllocator> pools = new LinkedHashMap<>();

    /// The private allocators again, for readers without the lock.
    private volatile OpenAllocator[] own = {};

    /// Private allocators that the device memory closed, but whose memory is retained because graphs still
    /// exist.
    private final Set<OpenAllocator> held = new HashSet<>();

    /// The last usual route, and the private route that served it.
    private volatile @Nullable Served last;

    /// @param budgets the budgets of the usual route, which may be charged to others later
    private record Served(Route usual, @Nullable Budgets budgets, Route pool) {
        boolean isFor(Route route) {
            return usual == route && budgets == route.budgets() && pool.isOpen();
        }
    }

    private final BlockHolders holders;

    /// The blocks that only a graph uses.
    private final Set<Long> kept = new LinkedHashSet<>();

    /// Kept blocks that were allocated here and freed in a capture. They may serve the capture's stream again.
    private final Map<Reusable, Deque<Long>> reusable = new HashMap<>();

    /// Live blocks that several streams use. They are not reused, since nothing orders those streams.
    private final Set<Long> usedElsewhere = new HashSet<>();

    /// The open checkpoints: each a sorted array of the addresses that it noted, compared by identity.
    private final List<long[]> checkpoints = new ArrayList<>();

    /// The addresses that any open checkpoint noted, sorted. A noted block that the program frees is kept,
    /// so its allocator does not reuse the address, and the block can be restored. Read without the lock.
    private volatile long[] noted = {};

    /// The captures under way, and some that have ended. Replaced when one begins, so that frees read it
    /// without a lock and without Java heap.
    private volatile StreamCapture[] into = {};

    /// Actions to run when the graphs are gone.
    private final Set<Runnable> whenGone = new LinkedHashSet<>();

    /// Graphs that were given up. They prevent reuse of the blocks' addresses.
    private final NodeQueue<StreamCapture> givenUp = new NodeQueue<>();

    /// Captures under way, and graphs that are not gone.
    private int uses;

    private boolean gone;

    /// Whether a graph may still run when it is reported gone. The driver itself reports only after the
    /// launches.
    private volatile boolean mayRun;

    /// Receives this once the graphs are gone.
    private final NodeQueue<GraphBlocks> ended;

    /// Made in advance, since graphs can end with a full Java heap.
    private final NodeQueue.Node<GraphBlocks> whenEnded = new NodeQueue.Node<>(this);

    private record Reusable(Route route, long stream, long byteSize) {}

    /// @param number distinguishes it from the other graph memories of its device memory
    /// @param ended receives it once the graphs are gone
    GraphBlocks(
            Registry registry,
            EventStreams eventStreams,
            CaptureOrder order,
            BlockHolders holders,
            long number,
            NodeQueue<GraphBlocks> ended) {
        this.registry = registry;
        this.router = registry.router();
        this.eventStreams = eventStreams;
        this.order = order;
        this.holders = holders;
        this.number = number;
        this.ended = ended;
    }

    /// Returns the bytes reserved only for these graphs, as far as the allocators report them. Kept blocks
    /// count in the figures of their own allocators.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public synchronized long reservedBytes(int device) {
        return pools.values().stream()
                .mapToLong(pool -> pool.reservedBytes(device).orElse(0))
                .sum();
    }

    public synchronized List<OpenAllocator> allocators() {
        return List.copyOf(pools.values());
    }

    /// Returns whether its graphs are gone and nothing more can be captured into it.
    public synchronized boolean isGone() {
        return gone;
    }

    /// Adds a use: a capture begins.
    synchronized void use(StreamCapture capture) {
        StreamCapture[] underWay = Arrays.copyOf(into, into.length + 1);
        int count = 0;
        for (StreamCapture each : into) {
            if (!each.isOver) {
                underWay[count] = each;
                count++;
            }
        }
        underWay[count] = capture;
        StreamCapture[] all = Arrays.copyOf(underWay, count + 1);
        use();
        into = all;
    }

    /// Whether a stream is captured into these graphs.
    private boolean isCapturedInto() {
        for (StreamCapture capture : into) {
            if (!capture.isOver) {
                return true;
            }
        }
        return false;
    }

    /// Whether a stream is known to be captured into these graphs. The driver must not be asked about an
    /// ended stream.
    private boolean isInto(int device, long stream) {
        if (router.hasEnded(device, stream)) {
            return false;
        }
        try {
            for (StreamCapture capture : into) {
                if (!capture.isOver && capture.device == device && capture.holds(stream)) {
                    return true;
                }
            }
            return false;
        } catch (CudaException untold) {
            return false;
        }
    }

    /// Adds a use: other code keeps the memory of the graphs.
    public synchronized void use() {
        if (gone) {
            throw new IllegalStateException("the graphs of this memory no longer exist; capture into new memory");
        }
        uses++;
    }

    /// Ends a use: a capture gave no graph, or a graph is gone. Makes no driver call.
    public synchronized void release() {
        if (uses == 1) {
            gone = true;
            ended.add(whenEnded);
        }
        uses--;
    }

    /// Notes that the program, not the driver, reports when a graph is gone.
    public void mayRun() {
        mayRun = true;
    }

    /// Serves a captured stream.
    ///
    /// @param usual the route that would serve it without the capture
    long allocate(Route usual, long byteSize, long stream) {
        Served served = last;
        if (served != null && served.isFor(usual)) {
            return allocateThrough(served.pool, byteSize, stream);
        }
        OpenAllocator allocator = registry.ownerOf(usual);
        if (!allocator.servesGraphs()) {
            return allocateKept(usual, byteSize, stream);
        }
        Route pool = poolOf(allocator).route(usual.device(), allocator.limitOf(usual));
        pool.retainFreed();
        last = new Served(usual, usual.budgets(), pool);
        return allocateThrough(pool, byteSize, stream);
    }

    private long allocateThrough(Route pool, long byteSize, long stream) {
        order.asksFor(stream);
        try {
            return router.allocateThrough(pool, byteSize, stream);
        } finally {
            order.asksNoMore();
        }
    }

    /// Opens the private allocator without the lock, since this calls a plug-in. If two threads race, one
    /// closes its allocator.
    private OpenAllocator poolOf(OpenAllocator usual) {
        OpenAllocator present = presentPoolOf(usual);
        if (present != null) {
            return present;
        }
        OpenAllocator opened = registry.openForGraphs(usual, toString(), order, this::drained);
        OpenAllocator first = firstOf(usual, opened);
        if (first != opened) {
            opened.close();
        }
        return first;
    }

    private synchronized @Nullable OpenAllocator presentPoolOf(OpenAllocator usual) {
        OpenAllocator pool = pools.get(usual);
        if (pool != null) {
            hold(pool);
        }
        return pool;
    }

    private synchronized OpenAllocator firstOf(OpenAllocator usual, OpenAllocator opened) {
        OpenAllocator first = pools.computeIfAbsent(usual, _ -> opened);
        own = pools.values().toArray(OpenAllocator[]::new);
        hold(first);
        return first;
    }

    private void hold(OpenAllocator pool) {
        if (held.contains(pool)) {
            return;
        }
        pool.beginBuiltOn();
        try {
            held.add(pool);
        } catch (OutOfMemoryError full) {
            pool.endBuiltOn();
            throw full;
        }
    }

    /// Serves a captured stream with a block of the usual allocator. The block is idle when the graph is
    /// launched, since it is allocated on another stream, which has no work.
    private long allocateKept(Route usual, long byteSize, long stream) {
        long again = reuse(new Reusable(usual, stream, byteSize));
        if (again != 0) {
            return again;
        }
        int device = usual.device();
        long ready = eventStreams.ready(device);
        long address = router.allocateThrough(usual, byteSize, ready);
        if (address == Router.REFUSED) {
            return address;
        }
        boolean served = false;
        try {
            registry.driver().streams().synchronize(device, ready);
            holders.own(address, this);
            served = true;
            return address;
        } finally {
            if (!served) {
                router.free(address, ready); // the caller never receives it
            }
        }
    }

    /// Returns a kept block that was freed on the same route and stream and has the wanted size, or 0.
    private synchronized long reuse(Reusable wanted) {
        Deque<Long> free = reusable.get(wanted);
        if (free == null || free.isEmpty()) {
            return 0;
        }
        Long again = free.element();
        kept.remove(again);
        free.remove();
        holders.revive(again);
        return again;
    }

    /// Destroys a graph that will not be launched, once the private allocators have drained: if their
    /// blocks are nodes of the graph, the driver may reuse the addresses after that.
    ///
    /// @param destroying destroys the graph
    void giveUp(StreamCapture capture, Runnable destroying) {
        capture.givenUp = destroying;
        givenUp.add(capture.whenGivenUp);
        drained();
    }

    /// Called when a private allocator has given its memory back, or may have.
    private void drained() {
        try {
            destroyGivenUp();
        } catch (CudaException refused) {
            // The free that led here can't handle this; [#close] retries.
        }
    }

    private void destroyGivenUp() {
        for (OpenAllocator pool : own) {
            if (!pool.isDrained()) {
                return;
            }
        }
        for (var ended = givenUp.poll(); ended != null; ended = givenUp.poll()) {
            try {
                DeadContext.insist(Objects.requireNonNull(ended.value().givenUp));
            } catch (CudaException refused) {
                givenUp.add(ended);
                throw refused;
            }
        }
    }

    /// Returns whether a route leads to a private allocator, whose blocks are freed in the usual way.
    boolean owns(Route route) {
        for (OpenAllocator pool : own) {
            if (pool.leads(route)) {
                return true;
            }
        }
        return false;
    }

    /// Returns whether a live block belongs to these graphs.
    boolean owns(long address, Route route) {
        return owns(route) || holders.owners(address).contains(this);
    }

    /// Keeps a block that is being freed: one of another allocator, on a captured stream.
    ///
    /// @return false if the graphs are gone, since the capture has ended
    synchronized boolean keep(long address) {
        if (!gone) {
            enter(address);
        }
        return !gone;
    }

    /// Keeps a block of these graphs that is being freed.
    ///
    /// @return false if no graph uses it any more, or its private allocator keeps it
    boolean keepsOwn(long address, long stream) {
        Route route = router.routeOfBlock(address);
        boolean inside = isInto(route.device(), stream);
        long byteSize = router.byteSizeOf(address);
        synchronized (this) {
            if (!mayKeepOwn(address, route)) {
                return false;
            }
            boolean again = inside && !hasNoted(address) && !usedElsewhere.contains(address);
            Deque<Long> free = again
                    ? reusable.computeIfAbsent(new Reusable(route, stream, byteSize), _ -> new ArrayDeque<>())
                    : new ArrayDeque<>();
            free.push(address);
            try {
                enter(address);
            } catch (Throwable failure) {
                free.pop();
                throw failure;
            }
            usedElsewhere.remove(address);
            return true;
        }
    }

    private boolean mayKeepOwn(long address, Route route) {
        return !gone && (!owns(route) || hasNoted(address));
    }

    /// Keeps a block of these graphs that other graphs kept until now.
    ///
    /// @return false if no graph uses it any more
    private synchronized boolean takeOver(Long address, Route route) {
        if (!mayKeepOwn(address, route)) {
            return false;
        }
        keepOn(address);
        return true;
    }

    private synchronized void keepOn(Long address) {
        holders.passOn(address, this);
        kept.add(address);
    }

    /// Runs an action when the graphs are gone, on the thread that gives their memory back. An action that
    /// throws is run again at the next opportunity. An action that equals a waiting one is not added.
    ///
    /// @return false if the graphs are already gone; the action then does not run
    public synchronized boolean whenGone(Runnable action) {
        if (!gone) {
            whenGone.add(action);
        }
        return !gone;
    }

    /// Notes that a live block is used on a stream other than that of its free.
    synchronized void usedElsewhere(long address) {
        usedElsewhere.add(address);
    }

    /// @throws UnknownAddressException if another free of the block came first; nothing changes then, nor after an
    ///     error
    private void enter(Long address) {
        boolean isNew = kept.add(address);
        boolean entered = false;
        try {
            if (!isNew || !holders.keep(address, this)) {
                throw new UnknownAddressException(address);
            }
            entered = true;
        } finally {
            if (isNew && !entered) {
                kept.remove(address);
            }
        }
        router.ofLive(address, (at, byteSize, route) -> {
            registry.observers().post(Events.FREE_DEFERRED, route.toString(), route.device(), at, byteSize, 0);
            return true;
        });
    }

    private boolean hasNoted(long address) {
        return isIn(noted, address);
    }

    private static boolean isIn(long[] addresses, long address) {
        return Arrays.binarySearch(addresses, address) >= 0;
    }

    /// Takes a checkpoint of the live blocks.
    ///
    /// @throws IllegalStateException if a stream is captured into this memory, or its graphs are gone
    public synchronized long[] checkpoint() {
        requireRest();
        long[] live = live();
        for (long address : live) {
            holders.own(address, this);
        }
        checkpoints.add(live);
        try {
            noted = merged(_ -> true);
        } catch (Throwable failure) {
            checkpoints.removeLast();
            throw failure;
        }
        return live;
    }

    private void requireRest() {
        if (gone) {
            throw new IllegalStateException("the graphs of this memory no longer exist");
        }
        if (isCapturedInto()) {
            throw new IllegalStateException("a stream is being captured into this memory: end the capture first");
        }
    }

    private long[] live() {
        LongStream.Builder live = LongStream.builder();
        router.forEachLive((address, _, route) -> {
            if (owns(address, route)) {
                live.add(address);
            }
        });
        return live.build().sorted().toArray();
    }

    /// Returns the addresses that some open checkpoints noted, sorted.
    private long[] merged(Predicate<long[]> which) {
        return checkpoints.stream()
                .filter(which)
                .flatMapToLong(Arrays::stream)
                .sorted()
                .toArray();
    }

    /// Restores the noted blocks that the program has since freed.
    ///
    /// @return their addresses
    /// @throws IllegalStateException if a stream is captured into this memory, its graphs are gone, the
    ///     checkpoint is closed, a live block is not in it, or a noted block is kept for other
    ///     graphs; nothing changes then
    public synchronized List<Long> restore(long[] checkpoint) {
        if (!checkpoints.contains(checkpoint)) {
            throw new IllegalStateException("the checkpoint is closed");
        }
        requireRest();
        long[] live = live();
        long others =
                Arrays.stream(live).filter(each -> !isIn(checkpoint, each)).count();
        if (others > 0) {
            throw new IllegalStateException(
                    "live blocks of this memory that are not in the checkpoint: " + others + "; free them first");
        }
        List<Long> again = Arrays.stream(checkpoint)
                .filter(each -> !isIn(live, each))
                .boxed()
                .toList();
        if (!kept.containsAll(again)) {
            throw new IllegalStateException("a block of the checkpoint is kept for other graphs: it was freed on a"
                    + " stream that was captured into them");
        }
        again.forEach(address -> {
            kept.remove(address);
            holders.revive(address);
        });
        return again;
    }

    /// Closes a checkpoint. The blocks that only it kept are returned after all work, when nothing is
    /// captured.
    ///
    /// @param captures those of the device memory
    /// @throws CudaException if the driver refuses to order that; the blocks are then returned with the
    ///     graphs
    @SuppressWarnings("ReferenceEquality") // they are compared by identity
    public void closeCheckpoint(long[] checkpoint, Captures captures) {
        LongPredicate onlyHere = address -> isIn(checkpoint, address) && !hasNoted(address);
        var givingBack = new NodeQueue.Node<Runnable>(() -> giveBack(onlyHere));
        synchronized (this) {
            long[] others = merged(each -> each != checkpoint);
            if (!checkpoints.remove(checkpoint)) {
                return;
            }
            noted = others;
        }
        captures.whenNoneIsUnderWay(givingBack);
    }

    /// Gives kept blocks of private allocators back, after all work.
    ///
    /// @throws CudaException if the driver refuses
    private void giveBack(LongPredicate wanted) {
        List<Long> blocks;
        synchronized (this) {
            blocks = kept.stream()
                    .filter(address -> owns(router.routeOfBlock(address)) && wanted.test(address))
                    .toList();
        }
        for (Long address : blocks) {
            free(address, eventStreams.behindAll(router.deviceOf(address)));
        }
    }

    /// Releases everything when the graphs are gone. After a refusal, the next call resumes. Memory that
    /// only the graphs used comes first: it is idle, so no capture forbids its release.
    ///
    /// @throws CudaException if the driver refuses
    void close() {
        List<Runnable> actions;
        synchronized (this) {
            actions = List.copyOf(whenGone);
        }
        if (mayRun) {
            eventStreams.awaitAllWork();
            mayRun = false;
        }
        actions.forEach(this::run);
        for (Long address : keptForGraphsOnly()) {
            free(address, eventStreams.ready(router.deviceOf(address)));
        }
        for (OpenAllocator pool : own) {
            pool.extension(GraphAllocator.class).ifPresent(GraphAllocator::graphsGone);
        }
        for (Long address : allKept()) {
            free(address, eventStreams.behindAll(router.deviceOf(address)));
        }
        for (OpenAllocator pool : own) {
            pool.close();
            letGo(pool);
        }
        destroyGivenUp();
        synchronized (this) {
            reusable.clear();
        }
    }

    private synchronized List<Long> allKept() {
        return List.copyOf(kept);
    }

    private synchronized List<Long> keptForGraphsOnly() {
        return reusable.values().stream()
                .flatMap(Deque::stream)
                .filter(kept::contains)
                .toList();
    }

    private void letGo(OpenAllocator pool) {
        synchronized (this) {
            if (!held.remove(pool)) {
                return; // a call before a refusal did it
            }
        }
        pool.endBuiltOn();
    }

    private void run(Runnable action) {
        action.run();
        synchronized (this) {
            whenGone.remove(action);
        }
    }

    private void free(Long address, long stream) {
        synchronized (this) {
            if (!kept.remove(address)) {
                return; // the block is alive again, or was given back
            }
        }
        try {
            Route route = router.routeOfBlock(address);
            for (GraphBlocks owner : holders.owners(address)) {
                if (owner != this && owner.takeOver(address, route)) {
                    return;
                }
            }
            registry.observers().post(COMPLETED, router, route.device(), address, 0, 0);
            holders.forget(address);
            router.freeKept(address, stream);
        } catch (OutOfMemoryError full) {
            if (router.isKept(address)) { // else its allocator already has the block
                keepOn(address);
            }
            throw full;
        }
    }

    @Override
    public String toString() {
        return "graph memory " + number;
    }
}
