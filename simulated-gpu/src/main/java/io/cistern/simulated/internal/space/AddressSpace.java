package io.cistern.simulated.internal.space;

import io.cistern.cuda.CudaResult;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.FreeRanges;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Manages all addresses of a machine: one space for all devices, as with unified addressing.
///
/// ```
/// 0x0200_0000_0000      0x5000_0000_0000          0x7000_0000_0000      0x7e00_0000_0000
///        | more, when needed   |  programs, their heaps  | all memory at first |  the system's own mappings
/// ```
/// Three maps by address hold the taken ranges, the mappings of physical memory inside them, and the live
/// allocations. Pinned host memory is mapped and allocated at its own native address, outside the taken ranges.
public final class AddressSpace {
    private static final long FIRST = 0x7000_0000_0000L;
    private static final long BYTE_SIZE = 0x0e00_0000_0000L;
    /// A pool takes addresses for all memory that it could hold, so many pools need more than the first range.
    private static final long FIRST_MORE = 0x0200_0000_0000L;

    private static final long MORE_BYTES = 0x4e00_0000_0000L;

    private final FreeRanges free = new FreeRanges();
    private final TreeMap<Long, Long> reservations = new TreeMap<>();
    private final TreeMap<Long, Mapping> mappings = new TreeMap<>();
    private final TreeMap<Long, Allocation> allocations = new TreeMap<>();
    private long lastBufferId;

    public AddressSpace() {
        free.put(FIRST, BYTE_SIZE);
        free.put(FIRST_MORE, MORE_BYTES);
    }

    public long nextBufferId() {
        return ++lastBufferId;
    }

    public long freeBytes() {
        return free.all().stream().mapToLong(FreeRanges.Range::byteSize).sum();
    }

    /// Takes addresses: at the desired address if it is free and aligned, else the best fit.
    public long takeAddresses(long byteSize, long byteAlignment, long wish) {
        if (wish != 0 && free.holding(wish, byteSize) != null && wish % byteAlignment == 0) {
            free.take(wish, byteSize);
            return wish;
        }
        FreeRanges.Range range = free.bestFit(byteSize);
        if (range != null && aligned(range, byteAlignment) + byteSize > range.end()) {
            range = free.bestFit(byteSize + byteAlignment);
        }
        if (range == null) {
            throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
        }
        long address = aligned(range, byteAlignment);
        free.take(address, byteSize);
        return address;
    }

    private static long aligned(FreeRanges.Range range, long byteAlignment) {
        return (range.address() + byteAlignment - 1) & -byteAlignment;
    }

    public void returnAddresses(long address, long byteSize) {
        free.put(address, byteSize);
    }

    public NavigableMap<Long, Long> reservations() {
        return reservations;
    }

    public NavigableMap<Long, Mapping> mappings() {
        return mappings;
    }

    public Map.@Nullable Entry<Long, Long> reservationAt(long address) {
        Map.Entry<Long, Long> entry = reservations.floorEntry(address);
        return entry != null && address < entry.getKey() + entry.getValue() ? entry : null;
    }

    @Nullable
    public Mapping mappingAt(long address) {
        Map.Entry<Long, Mapping> entry = mappings.floorEntry(address);
        return entry != null && address < entry.getValue().end() ? entry.getValue() : null;
    }

    public boolean anyMappingIn(long address, long byteSize) {
        Map.Entry<Long, Mapping> last = mappings.lowerEntry(address + byteSize);
        return last != null && last.getValue().end() > address;
    }

    public void map(Mapping mapping) {
        mappings.put(mapping.address(), mapping);
        mapping.block().mapped();
    }

    public void unmap(Mapping mapping) {
        mappings.remove(mapping.address());
        mapping.block().unmapped();
    }

    /// Adds a live allocation, with a unique number.
    public void add(Mapping.Kind kind, long address, long byteSize, int device, @Nullable PoolSimulation pool) {
        add(kind, address, byteSize, device, pool, null);
    }

    /// Adds a live allocation that was made on a stream, after the work issued to it so far.
    public void add(
            Mapping.Kind kind,
            long address,
            long byteSize,
            int device,
            @Nullable PoolSimulation pool,
            @Nullable StreamQueue stream) {
        long sequence = stream == null ? 0 : stream.issued();
        Allocation allocation =
                new Allocation(kind, address, byteSize, device, nextBufferId(), pool, stream, sequence, new UseMarks());
        allocations.put(address, allocation);
    }

    public void remove(Allocation allocation) {
        allocations.remove(allocation.address());
    }

    public long allocations(Mapping.Kind kind) {
        return allocations.values().stream()
                .filter(allocation -> allocation.kind() == kind)
                .count();
    }

    @Nullable
    public Allocation allocationStartingAt(long address) {
        return allocations.get(address);
    }

    @Nullable
    public Allocation allocationAt(long address) {
        Map.Entry<Long, Allocation> entry = allocations.floorEntry(address);
        return entry != null && address < entry.getValue().end() ? entry.getValue() : null;
    }
}
