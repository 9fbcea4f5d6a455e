package io.cistern;

import io.cistern.diagnostics.CompactionResult;
import io.cistern.diagnostics.LiveBlock;
import io.cistern.diagnostics.SegmentMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.Budget;
import io.cistern.internal.routing.LimitHandle;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeStack;
import io.cistern.internal.routing.ScopeStacks;
import io.cistern.internal.statistics.StatisticsTable;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySleep;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import io.cistern.spi.options.AllocatorSpec;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/// An open allocator, as a program sees it. The framework counts and limits the blocks of every allocator,
/// even if a plug-in provides the allocator.
///
/// Blocks are freed with [DeviceMemory#free], which finds the allocator by the address.
///
/// **Threads.** Any thread may call any method at any time.
public sealed class Allocator implements AutoCloseable permits MemoryPool {
    private final DeviceMemory memory;
    private final Router router;
    private final OpenAllocator opened;

    Allocator(DeviceMemory memory, OpenAllocator opened) {
        this.memory = memory;
        this.router = memory.router;
        this.opened = opened;
    }

    OpenAllocator opened() {
        return opened;
    }

    /// Returns the provider's name; for an allocator that the program made or built as an adaptor, the name
    /// in its [OpenOptions].
    public String name() {
        return opened.spec().name();
    }

    /// Returns the device memory that this allocator belongs to.
    public DeviceMemory memory() {
        return memory;
    }

    /// Returns the spec that this allocator was opened with. If it was opened without one, the spec is only
    /// its [name][#name].
    public AllocatorSpec spec() {
        return opened.spec();
    }

    /// Allocates memory for use on a stream, from this allocator, whichever allocator is current. If this
    /// allocator is out of memory, a pool that [lends][MemoryPool.Builder#lendsToOthers] may serve the
    /// request.
    ///
    /// @param byteSize the requested bytes; 0 returns address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first, a `CUstream`; 0 and 1 are the legacy
    ///     default stream
    /// @return an address that is a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is too little memory, or a limit refuses the request
    /// @throws io.cistern.errors.AllocatorContractException if a plug-in returned an illegal address
    /// @throws io.cistern.errors.UnusableStreamException if `stream` is the per-thread default stream and
    ///     the caller is a virtual thread; or if `stream` is in an unannounced capture while an announced
    ///     one is under way on the device
    /// @throws io.cistern.errors.MemoryAsleepException if this allocator is a pool that is asleep
    /// @throws IllegalStateException if this allocator is closed
    public long allocate(long byteSize, int device, long stream) {
        return memory.observers.any()
                ? allocateObserved(byteSize, device, stream)
                : allocateNow(byteSize, device, stream);
    }

    private long allocateObserved(long byteSize, int device, long stream) {
        long begun = memory.observed.begin();
        long address = 0;
        try {
            address = allocateNow(byteSize, device, stream);
            return address;
        } finally {
            memory.observed.allocated(address, stream, begun);
        }
    }

    private long allocateNow(long byteSize, int device, long stream) {
        Route route = opened.route(device);
        long address;
        try {
            address = router.allocate(route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            var request = new OutOfMemoryHandler.Request(route, null, byteSize, stream, this::refuseClosed);
            return memory.outOfMemory.serve(request, failure);
        }
        if (address == Router.REFUSED) {
            throw opened.closed();
        }
        return address;
    }

    private Route refuseClosed(Route route) {
        throw opened.closed();
    }

    /// Returns the limit on the requested bytes of this allocator's live blocks, on all devices together.
    /// The program can set, change and lift it. If the allocator was opened with a limit, this method
    /// returns that limit. Limits of scopes and of the device memory apply as well. An
    /// [adaptor][OpenOptions#around] that is opened without a limit shares the limit that its upstream has
    /// when the adaptor is opened.
    public MemoryLimit limit() {
        LimitHandle set = opened.limit();
        if (set == null) {
            opened.ownLimit().compareAndSet(null, LimitHandle.of(opened.toString(), Budget.UNLIMITED, null));
        }
        LimitHandle handle =
                set != null ? set : Objects.requireNonNull(opened.ownLimit().get());
        Runnable begin = set != null ? null : () -> opened.limit(handle);
        return new MemoryLimit(
                handle, new MemoryLimit.Home(begin, () -> DeviceLimits.capacity(memory), this::requestedBytes));
    }

    private long requestedBytes() {
        return IntStream.range(0, memory.environment().deviceCount())
                .mapToLong(device -> opened.statistics(device).requestedBytes())
                .sum();
    }

    /// Opens a scope in which this allocator serves the calling thread on all devices and streams.
    ///
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter() {
        return enter(ScopeOptions.all());
    }

    /// Opens a scope in which this allocator serves the calling thread, on the devices and streams that the
    /// options name.
    ///
    /// @throws IndexOutOfBoundsException if the options name a device that does not exist
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(ScopeOptions options) {
        beginUse();
        try {
            return enter(options, this::endUse);
        } catch (Throwable failure) {
            endUse();
            throw failure;
        }
    }

    Scope enter(ScopeOptions options, Runnable whenClosed) {
        ScopeStack outer = memory.scopes.current();
        return new Scope(memory, this, outer, options.over(outer, opened), whenClosed);
    }

    /// Begins a use by a scope.
    ///
    /// @throws IllegalStateException if this allocator is a closed pool
    void beginUse() {}

    void endUse() {}

    /// Runs code in a scope of this allocator: see [#call].
    ///
    /// @throws IndexOutOfBoundsException if the options name a device that does not exist
    /// @throws IllegalStateException if this allocator is closed
    public void run(ScopeOptions options, Runnable body) {
        call(options, () -> {
            body.run();
            return true;
        });
    }

    /// Calls code in a scope of this allocator, which ends with the call. Threads that the code forks in a
    /// [java.util.concurrent.StructuredTaskScope] are in the scope, too, through a [ScopedValue]; other
    /// threads need a [ScopeCarrier].
    ///
    /// @return the result of the code
    /// @throws IndexOutOfBoundsException if the options name a device that does not exist
    /// @throws IllegalStateException if this allocator is closed
    /// @throws X if the code throws it
    public <R, X extends Throwable> R call(ScopeOptions options, ScopedValue.CallableOp<R, X> body) throws X {
        ScopeStacks scopes = memory.scopes;
        beginUse();
        try {
            ScopeStack inside = options.over(scopes.current(), opened);
            try {
                return scopes.call(inside, body);
            } finally {
                inside.ended();
            }
        } finally {
            endUse();
        }
    }

    /// Returns the framework's counts of this allocator on a device. The reserved bytes are empty if the
    /// allocator does not report them, or fails to.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public AllocatorStatistics statistics(int device) {
        RouteStatistics counted = opened.statistics(device);
        return new AllocatorStatistics(
                counted.allocations(),
                counted.frees(),
                opened.liveBlocks(device),
                counted.requestedBytes(),
                counted.requestedPeakBytes(),
                counted.requestedTotalBytes(),
                opened.knownReservedBytes(device));
    }

    /// Resets all peaks of this allocator on a device to the current values: those of the framework, and
    /// those that the allocator keeps itself ([MemoryStatistics]).
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        opened.resetPeaks(device);
    }

    /// Resets all totals of this allocator on a device to 0: allocations, frees and their bytes, and the
    /// totals that the allocator keeps itself ([MemoryStatistics]). Live blocks stay counted, and peaks
    /// stay.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        opened.resetTotals(device);
    }

    /// Returns the bytes that the allocator holds from the driver: 0 once it has [drained][#isDrained],
    /// empty if unknown.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public OptionalLong reservedBytes(int device) {
        return opened.reservedBytes(device);
    }

    /// Gives this allocator's idle memory on a device back to the driver until it has at most `keepBytes`
    /// reserved, and reports which memory stayed and why.
    ///
    /// @param keepBytes bytes that may stay reserved, at least 0
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        try {
            return opened.trim(device, keepBytes, mode);
        } finally {
            memory.observers.deliver();
        }
    }

    /// Compacts live memory on a device and gives the freed memory back to the driver, for example before a
    /// server's peak hours. No address changes. Pages stay as they are if captured graphs or the source of
    /// the pages need them. Nothing moves while a stream of the device is being captured, or if this
    /// allocator is a pool that is asleep. The program must have [registered][Listeners#onCompaction] a
    /// [pause][Listeners.WorkPause]; without one nothing moves.
    ///
    /// @return the result, with the reason if nothing was done
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the contents of all blocks are intact then
    public CompactionResult compact(int device) {
        try {
            return memory.outOfMemory.compact(opened, device);
        } finally {
            memory.observers.deliver();
        }
    }

    /// Returns the segments that the allocator holds on a device, with their blocks: see
    /// [MemoryStatistics#segments].
    ///
    /// @return the segments; an empty list if the allocator does not report them or fails to, or if it
    ///     holds none
    /// @throws IndexOutOfBoundsException if there is no such device
    public List<SegmentMemory> segments(int device) {
        opened.checkedDevice(device);
        return opened.isDrained() ? List.of() : opened.ownFigures(own -> own.segments(device), List.of());
    }

    /// Returns the figures of this allocator on a device, under the names that PyTorch's `memory_stats`
    /// uses: those that the framework counts for every allocator, and those that the allocator counts
    /// itself ([MemoryStatistics]), unless it fails to report them. The peak of requested bytes is no higher than
    /// [AllocatorStatistics#requestedPeakBytes].
    ///
    /// Pools and the memory of graphs are allocators of their own, with figures of their own:
    /// [MemoryPool#memoryStatistics], [io.cistern.graph.GraphMemory#statistics].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public Map<String, Long> memoryStatistics(int device) {
        AllocatorStatistics statistics = statistics(device);
        Map<String, Long> figures = statistics.figures();
        figures.put("requested_bytes.all.freed", opened.freedBytes(device));
        if (!opened.isDrained()) {
            figures.putAll(opened.ownFigures(own -> own.statistics(device), Map.of()));
            long current = figures.getOrDefault("requested_bytes.all.current", 0L);
            // An allocator's own peak may be less exact: the sum of several peaks.
            figures.merge("requested_bytes.all.peak", Math.max(statistics.requestedPeakBytes(), current), Math::min);
        }
        return figures;
    }

    /// Returns the [figures][#memoryStatistics] as human-readable text.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public String memorySummary(int device) {
        return StatisticsTable.text("allocator " + opened + ", device " + device, memoryStatistics(device));
    }

    /// Calls a listener when this allocator's memory in use on a device rises above a threshold: see
    /// [Listeners#onThreshold].
    ///
    /// @return a registration; closing it removes the listener
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Registration onThreshold(int device, MemoryMeasure measure, long byteSize, Listeners.Threshold listener) {
        return memory.listeners().onThreshold(device, measure, byteSize, opened.route(device), listener);
    }

    /// Returns an optional ability of the allocator, such as [MemoryStatistics]. This method never returns
    /// [MemoryReclaim] or [MemorySleep], since their methods move live memory or take it away. The
    /// framework itself calls these methods, when it is safe: see [#compact] and [MemoryPool#sleep].
    ///
    /// @return the ability; empty if the allocator lacks it, or if `type` is one of these two
    public <T> Optional<T> extension(Class<T> type) {
        return type == MemoryReclaim.class || type == MemorySleep.class ? Optional.empty() : opened.extension(type);
    }

    /// Returns an allocator that allocates from this one and on which others can be built, for example an
    /// adaptor or an allocator that bins sizes. For a pool over this allocator, use
    /// [MemoryPool.Builder#upstream].
    ///
    /// ```java
    /// try (DeviceAllocator small = pool.asUpstream();
    ///         DeviceAllocator large = memory.open("async").asUpstream()) {
    ///     Allocator binned = memory.open(OpenOptions.made("binned", new Binning(small, large)));
    ///     …
    /// }
    /// ```
    ///
    /// The framework records no owner for blocks of the returned allocator. So an allocator that is built
    /// on it may hand out these blocks as its own, or split them. The blocks are charged to this
    /// allocator's own limit, and to no other.
    ///
    /// @return an allocator, which the caller closes when it needs no more blocks from it. The blocks may
    ///     be freed after that; this allocator keeps its memory until all of them are freed
    /// @throws IllegalStateException if this allocator is closed
    public DeviceAllocator asUpstream() {
        return memory.registry.builtOn(opened);
    }

    /// Closes the allocator: it rejects further allocations, and waits for those in flight in other
    /// threads. Its memory returns to the driver when the last live block has been freed and nothing else
    /// uses the memory: see [#isDrained]. If nothing uses the memory now, it returns during this call.
    /// Closing twice does nothing.
    ///
    /// @throws IllegalStateException if the calling thread is in the middle of an allocation or a free of
    ///     this allocator, for example in a [listener][Listeners#onMemoryPressure] that makes room for an
    ///     allocation. Also if the calling thread is in the middle of a call to another allocator, while a
    ///     second thread that is in the middle of a call to this allocator closes the other one: the two
    ///     threads would wait for each other. The allocator stays open then
    /// @throws RuntimeException if the driver or the plug-in fails; the allocator is closed then
    @Override
    public void close() {
        closeNow();
    }

    final void closeNow() {
        try {
            opened.close();
        } finally {
            memory.observers.deliver();
        }
    }

    /// Returns this allocator's live blocks: see [DeviceMemory#liveBlocks].
    public List<LiveBlock> liveBlocks() {
        return memory.leaks.blocks(opened::leads);
    }

    /// Returns whether the allocator has been closed. A closed allocator refuses allocations.
    public boolean isClosed() {
        return opened.isClosed();
    }

    /// Returns whether the allocator has been closed and nothing uses its memory any more: no live block,
    /// no graph, and no allocator that is built on it. Its memory has then returned to the driver or, if a
    /// stream is being captured, returns after the capture.
    public boolean isDrained() {
        return opened.isDrained();
    }

    /// Returns the spec; for a pool, its id, tag and spec.
    @Override
    public String toString() {
        return opened.toString();
    }
}
