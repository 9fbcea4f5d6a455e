package io.cistern.simulated;

import io.cistern.cuda.CudaResult;

/// An allocation of a graph: an address from the start, memory from a launch on until the free.
final class GraphAllocation {
    private final Machine machine;
    private final GraphMemory memory;
    private final long address;
    private final long byteSize;
    private boolean live;
    private boolean reused;

    GraphAllocation(Machine machine, GraphMemory memory, long address, long byteSize) {
        this.machine = machine;
        this.memory = memory;
        this.address = address;
        this.byteSize = byteSize;
    }

    /// Another allocation at the same address, which begins after this one was freed.
    GraphAllocation again() {
        reused = true;
        return new GraphAllocation(machine, memory, address, byteSize);
    }

    boolean reused() {
        return reused;
    }

    long address() {
        return address;
    }

    long byteSize() {
        return byteSize;
    }

    /// Whether a launch allocated it and nobody freed it since.
    boolean live() {
        return live;
    }

    /// The stream allocates it.
    void allocate(StreamQueue stream) {
        machine.streams().enqueue(stream, Work.marker());
        machine.space()
                .add(new Allocation(
                        Mapping.Kind.GRAPH,
                        address,
                        byteSize,
                        stream.device(),
                        machine.space().nextBufferId(),
                        null,
                        stream,
                        stream.issued(),
                        new UseMarks()));
        live = true;
        memory.used(byteSize);
    }

    /// The stream frees it.
    void free(StreamQueue stream) {
        Allocation allocation = machine.space().allocationStartingAt(address);
        if (!live || allocation == null) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
        machine.hazards().free(io.cistern.cuda.DriverCall.MEM_FREE_ASYNC, stream, allocation);
        machine.space().remove(allocation);
        machine.streams().enqueue(stream, Work.marker());
        live = false;
        memory.used(-byteSize);
    }
}
