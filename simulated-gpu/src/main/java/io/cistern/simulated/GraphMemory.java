package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.LinearPlacement;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// The memory of a device's graphs. A graph takes addresses when it is created, and physical memory when it
/// is first launched. It keeps the memory until the memory is trimmed or the graph is gone. Guarded by the
/// machine's lock.
///
/// Invariants: `reserved = Σ bytes of the mapped ranges`; `used = Σ bytes of live allocations`.
final class GraphMemory {
    private static final long UNIT_BYTES = 2L << 20;

    private final Machine machine;
    private final int device;

    /// The users of each range, by address: allocations of one graph that follow each other.
    private final Map<Long, List<GraphAllocation>> ranges = new HashMap<>();

    private final Map<Long, Mapping> mapped = new HashMap<>();
    private long used;
    private long usedHigh;
    private long reservedHigh;

    GraphMemory(Machine machine, int device) {
        this.machine = machine;
        this.device = device;
    }

    GraphAllocation reserve(long byteSize) {
        long address = machine.space.takeAddresses(rounded(byteSize), UNIT_BYTES, 0);
        GraphAllocation allocation = new GraphAllocation(address, byteSize);
        ranges.put(address, new ArrayList<>(List.of(allocation)));
        return allocation;
    }

    private static long rounded(long byteSize) {
        return LinearPlacement.roundUp(byteSize, UNIT_BYTES);
    }

    /// Returns the latest allocation of a graph at an address; null if there is none.
    @Nullable
    GraphAllocation find(long address) {
        List<GraphAllocation> users = ranges.get(address);
        return users == null ? null : users.getLast();
    }

    @Nullable
    GraphAllocation findLive(long address) {
        List<GraphAllocation> users = ranges.getOrDefault(address, List.of());
        return users.stream().filter(each -> each.live).findFirst().orElse(null);
    }

    /// Returns whether a range lies in memory that some graph will have.
    boolean covers(long address, long byteSize) {
        return ranges.values().stream()
                .map(List::getFirst)
                .anyMatch(each -> each.address <= address && address + byteSize <= each.address + each.byteSize);
    }

    GraphAllocation again(GraphAllocation earlier) {
        GraphAllocation next = earlier.again();
        ranges.computeIfAbsent(next.address, _ -> new ArrayList<>()).add(next);
        return next;
    }

    /// Maps memory for allocations that are about to be launched: for all of them or none.
    void back(List<GraphAllocation> allocations) {
        List<Long> made = new ArrayList<>();
        for (GraphAllocation allocation : allocations) {
            if (mapped.containsKey(allocation.address)) {
                continue;
            }
            try {
                long bytes = rounded(allocation.byteSize);
                PhysicalBlock block = PhysicalBlock.onDevice(device, bytes, machine.device(device).budget);
                Mapping mapping = new Mapping(
                        Mapping.Kind.GRAPH, allocation.address, block, 0, machine.device(device).defaultPool::rights);
                machine.space.map(mapping);
                mapped.put(allocation.address, mapping);
                made.add(allocation.address);
            } catch (DriverFailure outOfMemory) {
                made.forEach(this::unmap);
                throw outOfMemory;
            }
        }
        reservedHigh = Math.max(reservedHigh, reserved());
    }

    private void unmap(long address) {
        Mapping mapping = mapped.remove(address);
        if (mapping != null) {
            machine.space.unmap(mapping);
        }
    }

    /// Forgets a dead allocation of a graph that is gone.
    void forget(GraphAllocation allocation) {
        List<GraphAllocation> users = ranges.getOrDefault(allocation.address, new ArrayList<>());
        users.remove(allocation);
        if (users.isEmpty() && ranges.remove(allocation.address) != null) {
            unmap(allocation.address);
            machine.space.returnAddresses(allocation.address, rounded(allocation.byteSize));
        }
    }

    /// Unmaps memory that no allocation or work uses.
    void trim() {
        List.copyOf(mapped.keySet()).stream()
                .filter(address -> findLive(address) == null)
                .filter(address -> isIdle(mapped.get(address)))
                .forEach(this::unmap);
    }

    private static boolean isIdle(@Nullable Mapping mapping) {
        return mapping != null && mapping.uses().find((stream, sequence) -> sequence > stream.completed()) == null;
    }

    private void countUsed(long change) {
        used += change;
        usedHigh = Math.max(usedHigh, used);
    }

    private long reserved() {
        return mapped.values().stream().mapToLong(Mapping::byteSize).sum();
    }

    long attribute(GraphMemoryAttribute attribute) {
        return switch (attribute) {
            case USED_CURRENT -> used;
            case USED_HIGH -> usedHigh;
            case RESERVED_CURRENT -> reserved();
            case RESERVED_HIGH -> reservedHigh;
        };
    }

    void reset(GraphMemoryAttribute attribute) {
        switch (attribute) {
            case USED_HIGH -> usedHigh = used;
            case RESERVED_HIGH -> reservedHigh = reserved();
            case USED_CURRENT, RESERVED_CURRENT -> throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }

    /// An allocation of a graph: it has an address from the start, and memory from a launch until its free.
    final class GraphAllocation {
        final long address;
        final long byteSize;
        boolean live;
        boolean reused;
        private boolean outlives;
        Optional<Work> freed = Optional.empty();

        private GraphAllocation(long address, long byteSize) {
            this.address = address;
            this.byteSize = byteSize;
        }

        /// Returns another allocation at the same address, which begins after this one was freed.
        GraphAllocation again() {
            reused = true;
            return new GraphAllocation(address, byteSize);
        }

        /// Called when the graph is gone. Returns whether the allocation is still live; its free then ends it.
        boolean outlives() {
            outlives = live;
            return outlives;
        }

        void allocate(StreamQueue stream) {
            machine.streams.enqueue(stream, Work.marker());
            machine.space.add(Mapping.Kind.GRAPH, address, byteSize, stream.device(), null, stream);
            live = true;
            countUsed(byteSize);
        }

        void free(StreamQueue stream) {
            Allocation allocation = machine.space.allocationStartingAt(address);
            if (!live || allocation == null) {
                throw new DriverFailure(CudaResult.INVALID_VALUE);
            }
            machine.hazards.free(DriverCall.MEM_FREE_ASYNC, stream, allocation);
            machine.space.remove(allocation);
            live = false;
            countUsed(-byteSize);
            Work end = Work.of(0, outlives ? () -> GraphMemory.this.forget(this) : () -> {});
            freed = Optional.of(end);
            machine.streams.enqueue(stream, end);
        }
    }
}
