package io.cistern;

import io.cistern.diagnostics.LiveBlock;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.reclaim.OutOfMemoryHandler;
import io.cistern.internal.registry.OpenAllocator;
import io.cistern.internal.routing.Region;
import io.cistern.internal.routing.Route;
import io.cistern.internal.routing.RouteStatistics;
import io.cistern.internal.routing.Router;
import io.cistern.internal.routing.ScopeTarget;
import io.cistern.internal.statistics.StatisticsTable;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// An allocator that was opened, as a program sees it: metered and owned by the framework whoever wrote it.
///
/// Blocks are freed with [DeviceMemory#free], which finds the maker by the address.
///
/// **Threads.** Any thread may call any method at any time.
public final class Allocator implements AutoCloseable {
    private final DeviceMemory memory;
    private final Router router;
    private final OpenAllocator opened;

    Allocator(DeviceMemory memory, OpenAllocator opened) {
        this.memory = memory;
        this.router = memory.router();
        this.opened = opened;
    }

    OpenAllocator opened() {
        return opened;
    }

    /// The provider's name.
    public String name() {
        return opened.spec().name();
    }

    /// The spec it was opened with.
    public AllocatorSpec spec() {
        return opened.spec();
    }

    /// Allocates memory for use on a stream, from this allocator whichever is current; where that is out of
    /// memory, from idle blocks of a pool that [lends][MemoryPoolBuilder#lendsToOthers].
    ///
    /// @param byteSize bytes wanted; 0 gives address 0, which may be freed
    /// @param device the device's ordinal
    /// @param stream the stream on which the memory is used first: a `CUstream`, 0 and 1 for the legacy default
    ///     stream
    /// @return an address that is a multiple of 256
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws DeviceOutOfMemoryException if there is no such memory, or a limit is reached
    /// @throws io.cistern.errors.AllocatorContractException if a plug-in returned an illegal address
    /// @throws IllegalStateException if this allocator is closed
    public long allocate(long byteSize, int device, long stream) {
        Route route = opened.route(device);
        long address;
        try {
            address = router.allocate(route, byteSize, stream);
        } catch (DeviceOutOfMemoryException failure) {
            var request = new OutOfMemoryHandler.Request(route, null, byteSize, stream, this::refuseClosed);
            return memory.outOfMemory().serve(request, failure);
        }
        if (address == Router.REFUSED) {
            throw opened.closed();
        }
        return address;
    }

    private Route refuseClosed(Route route) {
        throw opened.closed();
    }

    /// Opens a scope in which this allocator serves the calling thread on all devices and streams.
    ///
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter() {
        return enter(ScopeTarget.ALL, Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on one device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(int device) {
        return enter(ScopeTarget.ALL.onDevice(opened.checkedDevice(device)), Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on one stream of a device.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(int device, long stream) {
        return enter(ScopeTarget.ALL.onStream(opened.checkedDevice(device), stream), Allocator::nothing);
    }

    /// Opens a scope in which this allocator serves the calling thread on all devices and streams, and what it
    /// allocates is charged to a limit as well, and to all above it. A block stays charged until it is freed,
    /// in the scope or not. A scope opened inside has only its own limit: make that a child of this one, where
    /// both shall hold.
    ///
    /// @throws IllegalStateException if this allocator is closed
    public Scope enter(MemoryLimit limit) {
        return enter(ScopeTarget.ALL.within(limit.handle()), Allocator::nothing);
    }

    Scope enter(ScopeTarget target, Runnable whenClosed) {
        Region outer = router.region();
        return new Scope(router, this, outer, opened.region(outer, target), whenClosed, memory.openScopes());
    }

    private static void nothing() {}

    /// What the framework counted on a device.
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
                opened.reservedBytes(device));
    }

    /// Lets all peaks begin at what is alive or reserved now: those of the framework, and those that the
    /// allocator keeps itself ([MemoryStatistics]).
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetPeaks(int device) {
        opened.resetPeaks(device);
    }

    /// Lets all that is added up begin at 0: allocations, frees and their bytes, and what the allocator adds up
    /// itself ([MemoryStatistics]). What is alive stays counted as alive; peaks stay.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public void resetTotals(int device) {
        opened.resetTotals(device);
    }

    /// Bytes that the allocator holds from the driver: none once it is drained; empty if it can't tell.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public OptionalLong reservedBytes(int device) {
        return opened.reservedBytes(device);
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, without waiting for running
    /// work.
    ///
    /// @param keepBytes what may stay
    /// @return bytes given back
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public long trim(int device, long keepBytes) {
        return trim(device, keepBytes, TrimMode.WITHOUT_WAITING).returnedBytes();
    }

    /// Gives idle memory back to the driver until at most `keepBytes` are reserved, and tells what was left and
    /// why.
    ///
    /// @param keepBytes what may stay
    /// @throws IllegalArgumentException if `keepBytes` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public TrimResult trim(int device, long keepBytes, TrimMode mode) {
        return opened.trim(device, keepBytes, mode);
    }

    /// What is counted on a device, by the names of PyTorch's `memory_stats`: what the framework counts for every
    /// allocator, and all that the allocator counts itself. See [MemoryStatistics].
    ///
    /// Of this allocator alone. PyTorch's private pools (`reserved_bytes_by_private_pools`) are allocators of their
    /// own here: see [MemoryPool#statistics] and [io.cistern.internal.capture.GraphBlocks#reservedBytes].
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public Map<String, Long> memoryStatistics(int device) {
        Map<String, Long> figures = basicStatistics(device);
        if (!opened.isDrained()) {
            opened.extension(MemoryStatistics.class).ifPresent(detail -> figures.putAll(detail.statistics(device)));
        }
        return figures;
    }

    private Map<String, Long> basicStatistics(int device) {
        AllocatorStatistics counted = statistics(device);
        Map<String, Long> figures = new LinkedHashMap<>();
        figures.put("allocation.all.current", counted.liveBlocks());
        figures.put("allocation.all.allocated", counted.allocations());
        figures.put("allocation.all.freed", counted.frees());
        figures.put("requested_bytes.all.current", counted.requestedBytes());
        figures.put("requested_bytes.all.peak", counted.requestedPeakBytes());
        figures.put("requested_bytes.all.allocated", counted.requestedTotalBytes());
        figures.put("requested_bytes.all.freed", opened.freedBytes(device));
        counted.reservedBytes().ifPresent(bytes -> figures.put("reserved_bytes.all.current", bytes));
        return figures;
    }

    /// The [figures][#memoryStatistics] as a text for people.
    ///
    /// @throws IndexOutOfBoundsException if there is no such device
    public String memorySummary(int device) {
        return StatisticsTable.text("allocator " + opened + ", device " + device, memoryStatistics(device));
    }

    /// Has a listener called when what this allocator has in use on a device rises above a threshold: see
    /// [DeviceMemory#onThreshold].
    ///
    /// @return ends that
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public Runnable onThreshold(int device, MemoryMeasure measure, long byteSize, ThresholdListener listener) {
        return memory.onThreshold(device, measure, byteSize, opened.route(device), listener);
    }

    /// Asks for an optional ability of the allocator, such as [MemoryStatistics].
    public <T> Optional<T> extension(Class<T> type) {
        return opened.extension(type);
    }

    /// Refuses further allocations and waits for those under way in other threads. Memory goes back to the driver
    /// when the last live block has been freed, which may be now. Closing twice does nothing.
    ///
    /// @throws IllegalStateException in the middle of an allocation or a free of this allocator: in code that it
    ///     calls, or in a [listener][DeviceMemory#onMemoryPressure] that makes room for it; also in the
    ///     middle of one of another allocator that a thread in such code is closing, since both would wait for each
    ///     other; then it stays open
    /// @throws RuntimeException what the driver or the plug-in throws; the allocator is closed then
    @Override
    public void close() {
        opened.close();
    }

    /// The blocks of this allocator that are alive: see [DeviceMemory#leaks].
    public List<LiveBlock> leaks() {
        return memory.leakRecords().blocks(opened::leads);
    }

    /// Whether it was closed, so that it allocates nothing more.
    public boolean isClosed() {
        return opened.isClosed();
    }

    /// Whether it was closed and its last block is gone, so that its memory is back with the driver.
    public boolean isDrained() {
        return opened.isDrained();
    }

    /// The spec.
    @Override
    public String toString() {
        return opened.toString();
    }
}
