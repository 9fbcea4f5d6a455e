package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.Optional;

/// An allocation of a graph: it has an address from the start, and memory from a launch until its free.
final class GraphAllocation {
    private final Machine machine;
    private final GraphMemory memory;
    final long address;
    final long byteSize;
    boolean live;
    boolean reused;
    private boolean outlives;
    Optional<Work> freed = Optional.empty();

    GraphAllocation(Machine machine, GraphMemory memory, long address, long byteSize) {
        this.machine = machine;
        this.memory = memory;
        this.address = address;
        this.byteSize = byteSize;
    }

    /// Returns another allocation at the same address, which begins after this one was freed.
    GraphAllocation again() {
        reused = true;
        return new GraphAllocation(machine, memory, address, byteSize);
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
        memory.used(byteSize);
    }

    void free(StreamQueue stream) {
        Allocation allocation = machine.space.allocationStartingAt(address);
        if (!live || allocation == null) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
        machine.hazards.free(io.cistern.cuda.DriverCall.MEM_FREE_ASYNC, stream, allocation);
        machine.space.remove(allocation);
        live = false;
        memory.used(-byteSize);
        Work end = Work.of(0, outlives ? () -> memory.forget(this) : () -> {});
        freed = Optional.of(end);
        machine.streams.enqueue(stream, end);
    }
}
