package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.RangeAttributes;
import io.cistern.cuda.Streams;
import io.cistern.cuda.UnifiedMemory;
import io.cistern.simulated.internal.memory.HostContents;
import io.cistern.simulated.internal.memory.ManagedAdvice;
import io.cistern.simulated.internal.memory.ManagedContents;
import io.cistern.simulated.internal.memory.NativeRange;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// [UnifiedMemory] over the model. The memory is native, since the host reads and writes it at its address.
/// The model does not see the host's accesses, so they move no pages.
final class SimulatedUnifiedMemory implements UnifiedMemory {
    private static final long MAX_BYTES = 1L << 46;
    private static final long ALIGNMENT = 512;

    /// Fills memory whose contents were discarded.
    private static final int DISCARDED = 0xDDDD_DDDD;

    private final Machine machine;
    private final Map<Long, NativeRange> ranges = new HashMap<>();

    SimulatedUnifiedMemory(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long allocate(int device, long byteSize) {
        DriverCall call = DriverCall.MEM_ALLOC_MANAGED;
        return machine.call(call, device, () -> "device=" + device + ", byteSize=" + byteSize, () -> {
            require(byteSize != 0);
            failIf(byteSize < 0 || byteSize > MAX_BYTES, CudaResult.OUT_OF_MEMORY);
            NativeRange range = NativeRange.map(byteSize, ALIGNMENT);
            long address = range.memory().address();
            ranges.put(address, range);
            add(device, range.memory());
            return address;
        });
    }

    private void add(int device, MemorySegment memory) {
        long byteSize = memory.byteSize();
        PhysicalBlock block = PhysicalBlock.managed(device, byteSize, new HostContents(memory));
        Mapping.Kind kind = Mapping.Kind.MANAGED;
        machine.space.map(new Mapping(kind, memory.address(), block, 0, _ -> AccessRights.READ_WRITE));
        machine.space.add(kind, memory.address(), byteSize, device, null);
    }

    void release(Allocation allocation) {
        machine.space.remove(allocation);
        machine.space.unmap(java.util.Objects.requireNonNull(machine.space.mappingAt(allocation.address())));
        java.util.Objects.requireNonNull(ranges.remove(allocation.address())).close();
    }

    @Override
    public void prefetch(int device, long address, long byteSize, MemoryLocation target, long stream) {
        DriverCall call = DriverCall.MEM_PREFETCH_ASYNC;
        machine.run(call, device, () -> describe(address, byteSize, target) + ", stream=" + stream, () -> {
            checkRange(address, byteSize);
            checkPlace(target);
            StreamQueue queue = machine.streams.find(call, device, stream);
            machine.captures.refuseCaptured(queue);
            machine.use(call, queue, address, byteSize);
            forEachPart(
                    address, byteSize, (part, offset, length) -> part.advice().prefetched(target, offset, length));
            long nanos = machine.costs.deviceLatencyNanos() + (long) (byteSize / machine.costs.hostLinkBytesPerNano());
            machine.streams.enqueue(
                    queue, Work.of(nanos, machine.effect(device, () -> move(address, byteSize, target))));
        });
    }

    private void move(long address, long byteSize, MemoryLocation target) {
        forEachPart(address, byteSize, (part, offset, length) -> {
            if (target.type() == MemoryLocation.Type.DEVICE) {
                part.moveTo(machine.device(target.id()).budget, offset, length);
            } else {
                part.leave(offset, length);
            }
        });
    }

    /// Receives the part of a range that lies in one mapping.
    private interface Part {
        void take(ManagedContents contents, long offset, long byteSize);
    }

    private void forEachPart(long address, long byteSize, Part part) {
        for (long at = address; at < address + byteSize; ) {
            Mapping mapping = machine.space.mappingAt(at);
            if (mapping == null) {
                return; // freed before the stream reached this work
            }
            long end = Math.min(address + byteSize, mapping.end());
            if (mapping.block().contents() instanceof ManagedContents managed) {
                part.take(managed, at - mapping.address(), end - at);
            }
            at = end;
        }
    }

    @Override
    public void advise(int device, long address, long byteSize, MemoryAdvice advice, MemoryLocation place) {
        DriverCall call = DriverCall.MEM_ADVISE;
        machine.run(call, device, () -> advice + ", " + describe(address, byteSize, place), () -> {
            checkRange(address, byteSize);
            requireOfNoPool(address);
            boolean ofPlace = advice == MemoryAdvice.SET_PREFERRED_LOCATION
                    || advice == MemoryAdvice.SET_ACCESSED_BY
                    || advice == MemoryAdvice.UNSET_ACCESSED_BY;
            if (ofPlace) {
                checkPlace(place);
            }
            forEachPart(
                    address, byteSize, (part, offset, length) -> part.advice().advise(advice, place, offset, length));
        });
    }

    @Override
    public RangeAttributes attributes(int device, long address, long byteSize) {
        DriverCall call = DriverCall.MEM_RANGE_GET_ATTRIBUTE;
        return machine.call(call, device, () -> describe(address, byteSize), () -> {
            checkRange(address, byteSize);
            List<RangeAttributes> parts = new ArrayList<>();
            forEachPart(
                    address,
                    byteSize,
                    (part, offset, length) -> parts.add(part.advice().attributes(offset, length)));
            return parts.stream().reduce(ManagedAdvice::ofBoth).orElseThrow();
        });
    }

    /// The bytes become a pattern, and leave the device at once.
    @Override
    public void discard(int device, long address, long byteSize, long stream) {
        DriverCall call = DriverCall.MEM_DISCARD_BATCH_ASYNC;
        machine.run(call, device, () -> describe(address, byteSize) + ", stream=" + stream, () -> {
            require(stream != 0 && stream != Streams.LEGACY_DEFAULT);
            checkRange(address, byteSize);
            requireOfNoPool(address);
            StreamQueue queue = machine.streams.find(call, device, stream);
            machine.captures.refuseCaptured(queue);
            machine.use(call, queue, address, byteSize);
            Runnable discard = () -> forEachPart(address, byteSize, (part, offset, length) -> {
                part.fill(offset, length, DISCARDED);
                part.leave(offset, length);
            });
            machine.streams.enqueue(
                    queue, Work.of(machine.costs.deviceLatencyNanos(), machine.effect(device, discard)));
        });
    }

    /// Driver 580 refuses advice for memory of a pool.
    private void requireOfNoPool(long address) {
        Allocation allocation = machine.space.allocationAt(address);
        failIf(allocation != null && allocation.pool() != null, CudaResult.NOT_SUPPORTED);
    }

    private void checkRange(long address, long byteSize) {
        Allocation allocation = machine.space.allocationAt(address);
        require(byteSize > 0 && allocation != null && allocation.isManaged());
        require(address + byteSize
                <= java.util.Objects.requireNonNull(allocation).end());
    }

    private void checkPlace(MemoryLocation place) {
        if (place.type() == MemoryLocation.Type.DEVICE) {
            machine.requireDevice(place.id());
        }
        require(place.type() != MemoryLocation.Type.HOST_NUMA || place.id() == 0);
    }

    private static String describe(long address, long byteSize, MemoryLocation place) {
        return describe(address, byteSize) + ", " + place;
    }

    private static String describe(long address, long byteSize) {
        return "address=0x" + Long.toHexString(address) + ", byteSize=" + byteSize;
    }

    void close() {
        ranges.values().forEach(NativeRange::close);
        ranges.clear();
    }
}
