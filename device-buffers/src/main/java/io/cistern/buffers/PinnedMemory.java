package io.cistern.buffers;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.Streams;
import io.cistern.graph.GraphMemory;
import io.cistern.internal.routing.Router;
import io.cistern.spi.HostMemory;
import io.cistern.spi.StreamOrder;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/// Caches pinned host memory, since pinning is slow. It works like PyTorch's `CachingHostAllocator`.
///
/// **Sizes** of blocks are powers of two from 4 KiB to 1 MiB. Above 1 MiB, eight equal steps divide the
/// range from each power of two to the next, so a large block is at most an eighth larger than the
/// request. Blocks are not split, and a block serves only requests of its own size class.
///
/// **Streams.** A freed block is reused only once its last use on each stream has completed. The free
/// records fences on these streams, and the next requests of the block's size class query the fences.
/// Neither call waits for the device.
///
/// **Graphs.** Each launch of a graph uses the blocks that the captured streams used. Such a block is
/// not reused before the graph and its executables are destroyed, even if it is freed earlier
/// ([io.cistern.graph.GraphMemory]).
///
/// **Fast path.** One idle block of each size is in a front slot, which threads take from and return to
/// without a lock. All other calls take one lock. They hold the lock during the driver calls that
/// record and query fences, but not while the driver pins memory.
///
/// **Threads.** Any thread may call any method at any time.
public final class PinnedMemory implements HostMemory {
    /// Front slots are far enough apart that threads with different sizes share no cache line.
    private static final int STRIDE = 16;

    /// The size class of an empty buffer.
    private static final int NO_SIZE_CLASS = -1;

    /// How many freed blocks are checked before another one is pinned, which takes longer than the checks. If
    /// thousands of blocks wait for streams and fewer than one in this many is ready, a search may miss the ready
    /// ones.
    static final int MAX_LOOKS = 32;

    private final DeviceMemory memory;
    private final CudaDriver driver;
    private final StreamOrder order;
    private final PinnedStatistics statistics = new PinnedStatistics();
    private final AtomicReferenceArray<@Nullable PinnedBlock> front =
            new AtomicReferenceArray<>(PinnedSizes.COUNT * STRIDE);

    // By size class; guarded by `this`, like all blocks' streams and fences.
    private final List<Deque<PinnedBlock>> idle = new ArrayList<>();
    private final List<Deque<PinnedBlock>> waiting = new ArrayList<>();

    /// All blocks. Guarded by `this`.
    private final Set<PinnedBlock> pinned = new HashSet<>();

    /// Blocks that are handed out, by the streams that use them.
    private final Map<PinnedBlock.Stream, Set<PinnedBlock>> users = new HashMap<>();

    private final StagingPieces staging;
    private volatile boolean closed;

    PinnedMemory(DeviceMemory memory) {
        this.memory = memory;
        this.driver = memory.driver();
        this.order = memory.moduleSupport().streams();
        this.staging = new StagingPieces(driver, order, this);
        for (int i = 0; i < PinnedSizes.COUNT; i++) {
            idle.add(new ArrayDeque<>(0));
            waiting.add(new ArrayDeque<>(0));
        }
        memory.listeners().onStreamClosing(this::streamClosing);
    }

    /// Returns the pinned memory of a device memory. Closing the device memory closes its pinned memory,
    /// too. Keep the result if you allocate often.
    public static PinnedMemory of(DeviceMemory memory) {
        return BufferSupport.of(memory).pinned;
    }

    /// Returns the pinned memory of the process's own [device memory][DeviceMemory#system()].
    public static PinnedMemory system() {
        return of(DeviceMemory.system());
    }

    /// Allocates pinned memory, from an idle block or a new one.
    ///
    /// @param byteSize bytes wanted, up to 4 TiB; 0 gives a buffer without memory
    /// @throws IllegalArgumentException if `byteSize` is negative or more than 4 TiB
    /// @throws CudaException if the driver can't pin that many bytes
    @Override
    public PinnedBuffer allocate(long byteSize) {
        if (((byteSize - 1) >>> PinnedSizes.MAX_SHIFT) != 0) {
            return emptyOrTooLarge(byteSize);
        }
        return new PinnedBuffer(this, take(PinnedSizes.sizeClass(byteSize)), byteSize);
    }

    /// Pins native memory that the program already has, such as that of a mapped file or of another
    /// library. The region is part of neither this cache nor its statistics.
    ///
    /// @param memory native memory that lives at least until the region is closed; no other registered memory may
    ///     share a page with it
    /// @throws IllegalArgumentException if `memory` is on the Java heap, or empty
    /// @throws CudaException if the driver can't pin it
    public PinnedRegion register(MemorySegment memory) {
        if (!memory.isNative() || memory.byteSize() == 0) {
            throw new IllegalArgumentException("not native memory of at least one byte: " + memory);
        }
        return new PinnedRegion(driver, memory);
    }

    /// Returns the size of the block that serves a buffer of a given size.
    ///
    /// @param byteSize the buffer's bytes, from 1 to 4 TiB
    public static long pinnedBytes(long byteSize) {
        return PinnedSizes.bytes(PinnedSizes.sizeClass(byteSize));
    }

    /// Returns a block that nobody uses, idle or new.
    PinnedBlock take(int sizeClass) {
        PinnedBlock block = front.getAndSet(sizeClass * STRIDE, null);
        if (block == null) {
            block = idleOrNew(sizeClass);
        }
        statistics.taken(block);
        return block;
    }

    /// Counts a kept block as not in use for a while.
    synchronized void rests(PinnedBlock block) {
        block.cameBack++;
        statistics.rests(block.sizeClass);
    }

    /// Counts a kept block as in use again.
    synchronized void wakes(PinnedBlock block) {
        statistics.wakes(block.sizeClass);
        statistics.taken(block);
    }

    /// Returns the pieces through which arrays are copied.
    StagingPieces staging() {
        return staging;
    }

    boolean isClosed() {
        return closed;
    }

    private PinnedBuffer emptyOrTooLarge(long byteSize) {
        if (byteSize != 0) {
            throw new IllegalArgumentException("byteSize of pinned memory must be 0 to 4 TiB, not " + byteSize);
        }
        return new PinnedBuffer(this, new PinnedBlock(MemorySegment.NULL, NO_SIZE_CLASS, 0), byteSize);
    }

    private PinnedBlock idleOrNew(int sizeClass) {
        synchronized (this) {
            PinnedBlock found = idle.get(sizeClass).pollLast();
            if (found == null && takeBack(sizeClass, MAX_LOOKS)) {
                found = idle.get(sizeClass).pollLast();
            }
            if (found != null) {
                statistics.wakes(sizeClass);
                return found;
            }
        }
        long start = driver.nanoTime();
        PinnedBlock made = pin(sizeClass);
        synchronized (this) {
            statistics.pinned(sizeClass, driver.nanoTime() - start);
            statistics.wakes(sizeClass);
            pinned.add(made);
        }
        return made;
    }

    /// Pins in the context of a device that is already used, so that no other device gets a context for it. A
    /// dead context is skipped. All devices reach the memory.
    private PinnedBlock pin(int sizeClass) {
        CudaException dead = null;
        for (int device = 0; device < driver.devices().count(); device++) {
            if (driver.devices().isUsed(device)) {
                try {
                    return pin(sizeClass, device);
                } catch (CudaException failure) {
                    if (!failure.result().endsContext()) {
                        throw failure;
                    }
                    dead = failure;
                }
            }
        }
        if (dead != null) {
            throw dead;
        }
        return pin(sizeClass, 0);
    }

    private PinnedBlock pin(int sizeClass, int device) {
        return new PinnedBlock(driver.memory().allocateHost(device, PinnedSizes.bytes(sizeClass)), sizeClass, device);
    }

    /// Makes freed blocks of a size idle if no stream uses them any more. The others move to the end of the
    /// queue.
    private boolean takeBack(int sizeClass, int mostLooks) {
        Deque<PinnedBlock> blocks = waiting.get(sizeClass);
        boolean any = false;
        for (int left = Math.min(blocks.size(), mostLooks); left > 0; left--) {
            PinnedBlock block = blocks.getFirst();
            boolean passed = block.passed(order);
            blocks.removeFirst();
            if (passed) {
                block.used = false;
                block.cameBack++;
                addIdle(block);
                any = true;
            } else {
                blocks.addLast(block);
            }
        }
        return any;
    }

    void recordUse(PinnedBlock block, int device, long stream) {
        if (block.sizeClass == NO_SIZE_CLASS) {
            return;
        }
        Router.refuseThreadStream(device, stream);
        Optional<GraphMemory> graph = GraphMemory.ofCapture(memory, device, stream);
        if (graph.isPresent() && isKept(block, graph.get(), device)) {
            return;
        }
        synchronized (this) {
            block.used = true;
            if (stream == Streams.PER_THREAD_DEFAULT) {
                block.waitFor(order, device, stream); // another thread may free it
                return;
            }
            PinnedBlock.Stream name = name(device, stream);
            if (block.streams.add(name)) {
                users.computeIfAbsent(name, _ -> new HashSet<>()).add(block);
            }
        }
    }

    /// Keeps a block until a graph is gone.
    ///
    /// @return false if the graph is gone already: its capture has ended, and the graph with it, since the
    ///     caller looked
    private boolean isKept(PinnedBlock block, GraphMemory graph, int device) {
        PinnedBlock.GraphUse use = new PinnedBlock.GraphUse(this, block, graph, device);
        synchronized (this) {
            block.used = true;
            block.graphs.add(use);
        }
        boolean kept = false;
        try {
            kept = graph.whenGone(use);
        } finally {
            if (!kept) {
                ends(use);
            }
        }
        return kept;
    }

    /// Called when a graph that used a block is gone. Its last launch has finished with the block when all work
    /// of the device until now is done.
    void graphIsGone(PinnedBlock.GraphUse use) {
        synchronized (this) {
            use.block().waitForAll(order, use.device());
        }
        ends(use);
    }

    private void ends(PinnedBlock.GraphUse use) {
        PinnedBlock block = use.block();
        synchronized (this) {
            block.graphs.remove(use);
            if (block.graphs.isEmpty() && block.freedBeforeGraphs) {
                waiting.get(block.sizeClass).addLast(block);
                block.freedBeforeGraphs = false;
            }
        }
        trimIfClosed();
    }

    private static PinnedBlock.Stream name(int device, long stream) {
        return new PinnedBlock.Stream(device, stream == Streams.LEGACY_DEFAULT ? 0 : stream);
    }

    void free(PinnedBlock block) {
        if (block.sizeClass == NO_SIZE_CLASS) {
            return;
        }
        if (block.used) {
            freeUsed(block);
            return;
        }
        block.cameBack++;
        keep(block);
    }

    private void addIdle(PinnedBlock block) {
        statistics.rests(block.sizeClass);
        idle.get(block.sizeClass).addLast(block);
    }

    private void keep(PinnedBlock block) {
        if (closed || !front.compareAndSet(block.sizeClass * STRIDE, null, block)) {
            synchronized (this) {
                addIdle(block);
            }
        }
        trimIfClosed();
    }

    private void freeUsed(PinnedBlock block) {
        synchronized (this) {
            for (PinnedBlock.Stream name : block.streams) {
                forget(name, block);
                block.waitFor(order, name.device(), name.handle());
            }
            block.streams.clear();
            if (block.graphs.isEmpty()) {
                waiting.get(block.sizeClass).addLast(block);
            } else {
                block.freedBeforeGraphs = true;
            }
        }
        trimIfClosed();
    }

    /// If the driver keeps refusing to unpin a block, it stays idle; the next free tries again.
    private void trimIfClosed() {
        if (closed) {
            boolean _ = DeadContext.isDoneAtLast(this::unpinIdle);
        }
    }

    /// Returns a block that is counted as [resting][#rests] to the idle ones.
    synchronized void restsHere(PinnedBlock block) {
        idle.get(block.sizeClass).addLast(block);
    }

    private void forget(PinnedBlock.Stream name, PinnedBlock block) {
        Set<PinnedBlock> blocks = users.get(name);
        if (blocks != null && blocks.remove(block) && blocks.isEmpty()) {
            users.remove(name);
        }
    }

    /// Records fences on a stream that ends, for the blocks that it uses.
    private synchronized void streamClosing(int device, long stream) {
        PinnedBlock.Stream name = name(device, stream);
        Set<PinnedBlock> blocks = users.remove(name);
        if (blocks != null) {
            for (PinnedBlock block : blocks) {
                block.streams.remove(name);
                block.waitFor(order, name.device(), name.handle());
            }
        }
    }

    /// Unpins idle memory. Memory that is handed out, or still used by streams or graphs, stays.
    ///
    /// @return bytes unpinned
    /// @throws CudaException if the driver refuses to unpin some blocks: those stay, the others are unpinned
    public long trim() {
        GraphMemory.collect(memory);
        return unpinIdle();
    }

    private long unpinIdle() {
        staging.release();
        long freed = 0;
        CudaException refused = null;
        for (int sizeClass = 0; sizeClass < PinnedSizes.COUNT; sizeClass++) {
            PinnedBlock first = front.getAndSet(sizeClass * STRIDE, null);
            int left;
            synchronized (this) {
                if (first != null) {
                    addIdle(first);
                }
                takeBack(sizeClass, Integer.MAX_VALUE);
                left = idle.get(sizeClass).size();
            }
            for (; left > 0; left--) {
                PinnedBlock block = firstIdle(sizeClass);
                CudaException refusal = block == null ? null : tryUnpin(block);
                if (refusal != null) {
                    refused = refusal;
                } else if (block != null) {
                    freed += block.memory.byteSize();
                }
            }
        }
        if (refused != null) {
            throw refused;
        }
        return freed;
    }

    private synchronized @Nullable PinnedBlock firstIdle(int sizeClass) {
        return idle.get(sizeClass).pollFirst();
    }

    /// Unpins an idle block. After a failure it is idle again.
    ///
    /// @return why the driver refuses it, or null
    private @Nullable CudaException tryUnpin(PinnedBlock block) {
        boolean done = false;
        try {
            unpin(block);
            done = true;
            return null;
        } catch (CudaException refusal) {
            return refusal;
        } finally {
            if (!done) {
                restsHere(block);
            }
        }
    }

    private void unpin(PinnedBlock block) {
        long start = driver.nanoTime();
        DeadContext.survive(() -> driver.memory().freeHost(block.device, block.memory));
        synchronized (this) {
            pinned.remove(block);
            statistics.unpinned(block, driver.nanoTime() - start);
        }
    }

    /// Returns counters under the names of PyTorch's `host_memory_stats`. Each of these counters has the
    /// values `.current`, `.peak`, `.allocated` and `.freed`:
    ///
    /// - `allocations`, `allocated_bytes`: pinned blocks and their sizes, idle blocks included;
    /// - `active_requests`, `active_bytes`: blocks that are handed out or still used by streams or graphs,
    ///   and their full sizes.
    ///
    /// As in PyTorch, the peaks of `active_…` are the sums of the peaks of each size class. The counters of
    /// driver calls are:
    ///
    /// - `num_host_alloc`, `num_host_free`: calls that pin and unpin;
    /// - `host_alloc_time`, `host_free_time`: their times in microseconds, as `.total`, `.max`, `.min`,
    ///   `.count` and `.avg`.
    public Map<String, Long> statistics() {
        synchronized (this) {
            for (int sizeClass = 0; sizeClass < PinnedSizes.COUNT; sizeClass++) {
                takeBack(sizeClass, Integer.MAX_VALUE);
            }
            return statistics.figures(pinned);
        }
    }

    /// Resets all peaks to the current values.
    public synchronized void resetPeaks() {
        statistics.resetPeaks(pinned);
    }

    /// Resets the totals to 0: allocations, frees, driver calls and their times. Current values and peaks
    /// stay.
    public synchronized void resetTotals() {
        statistics.resetTotals(pinned);
    }

    /// Unpins idle memory after waiting for the streams that use freed memory. From now on each free unpins.
    void close() {
        closed = true;
        staging.await();
        synchronized (this) {
            waiting.forEach(blocks -> blocks.forEach(block -> block.await(order)));
        }
        trimIfClosed();
    }
}
