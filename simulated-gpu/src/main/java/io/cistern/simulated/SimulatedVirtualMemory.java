package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import io.cistern.simulated.internal.memory.ByteContents;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.MemoryBudget;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.space.Mapping;
import java.util.List;
import java.util.Map;

/// [VirtualMemory] over the model; results as observed on an H200 with driver 580.
final class SimulatedVirtualMemory implements VirtualMemory {
    /// The smallest granularity of an H200, which is also the recommended one.
    static final long GRANULARITY = 2L << 20;

    private final Machine machine;

    SimulatedVirtualMemory(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long granularity(PhysicalMemory memory, boolean recommended) {
        return machine.call(
                DriverCall.MEM_GET_ALLOCATION_GRANULARITY, memory.device(), memory::toString, () -> GRANULARITY);
    }

    @Override
    public long reserve(int device, long byteSize, long byteAlignment, long hint) {
        return machine.call(DriverCall.MEM_ADDRESS_RESERVE, device, new Arguments(device, hint, byteSize), () -> {
            require(byteSize > 0 && byteSize % GRANULARITY == 0 && Long.bitCount(byteAlignment) <= 1);
            require(byteAlignment >= 0 && hint % GRANULARITY == 0);
            long alignment = Math.max(byteAlignment, GRANULARITY);
            long address = machine.space.takeAddresses(byteSize, alignment, hint);
            machine.space.reservations().put(address, byteSize);
            return address;
        });
    }

    @Override
    public void freeReservation(int device, long address, long byteSize) {
        machine.run(DriverCall.MEM_ADDRESS_FREE, device, new Arguments(device, address, byteSize), () -> {
            Long reserved = machine.space.reservations().get(address);
            require(reserved != null && reserved == byteSize && !machine.space.anyMappingIn(address, byteSize));
            machine.space.reservations().remove(address);
            machine.space.returnAddresses(address, byteSize);
        });
    }

    @Override
    public long create(long byteSize, PhysicalMemory memory) {
        return machine.call(DriverCall.MEM_CREATE, memory.device(), () -> byteSize + " bytes, " + memory, () -> {
            require(byteSize > 0 && byteSize % GRANULARITY == 0);
            MemoryLocation location = memory.location();
            boolean onDevice = location.type() == MemoryLocation.Type.DEVICE;
            if (onDevice) {
                machine.requireDevice(location.id());
            }
            if ((memory.handleTypes() & HandleType.FABRIC.bit()) != 0) {
                // The result on a machine without an IMEX channel.
                throw new DriverFailure(CudaResult.NOT_PERMITTED);
            }
            MemoryBudget budget = onDevice ? machine.device(location.id()).budget : null;
            if (budget != null) {
                budget.makeRoom(byteSize, null);
            }
            failIf(budget != null && !budget.has(byteSize), CudaResult.OUT_OF_MEMORY);
            machine.spend(DriverCall.MEM_CREATE, byteSize);
            PhysicalBlock block =
                    new PhysicalBlock(byteSize, location, memory.handleTypes(), new ByteContents(byteSize), budget);
            block.retain();
            block.setHandle(machine.handles.register(block));
            return block.handle();
        });
    }

    @Override
    public void release(int device, long handle) {
        machine.run(DriverCall.MEM_RELEASE, device, () -> "handle=0x" + Long.toHexString(handle), () -> {
            PhysicalBlock block = find(DriverCall.MEM_RELEASE, device, handle);
            require(block.references() > 0);
            block.release();
            machine.spend(DriverCall.MEM_RELEASE, block.byteSize());
            if (block.unused()) {
                machine.handles.forget(handle);
            }
        });
    }

    @Override
    public void map(int device, long address, long byteSize, long handle) {
        machine.run(DriverCall.MEM_MAP, device, new Arguments(device, address, byteSize), () -> {
            require(byteSize > 0 && address % GRANULARITY == 0);
            PhysicalBlock block = find(DriverCall.MEM_MAP, device, handle);
            failIf(byteSize != block.byteSize(), CudaResult.NOT_SUPPORTED);
            Map.Entry<Long, Long> reservation = machine.space.reservationAt(address);
            require(reservation != null && address + byteSize <= reservation.getKey() + reservation.getValue());
            require(!machine.space.anyMappingIn(address, byteSize));
            long id = machine.space.nextBufferId();
            machine.space.map(new Mapping(Mapping.Kind.VIRTUAL, address, block, id, null));
        });
    }

    @Override
    public void unmap(int device, long address, long byteSize) {
        machine.run(DriverCall.MEM_UNMAP, device, new Arguments(device, address, byteSize), () -> {
            require(byteSize > 0 && address % GRANULARITY == 0 && byteSize % GRANULARITY == 0);
            Map.Entry<Long, Long> reservation = machine.space.reservationAt(address);
            require(reservation != null && address + byteSize <= reservation.getKey() + reservation.getValue());
            List<Mapping> whole = wholeMappings(address, byteSize);
            for (Mapping mapping : whole) {
                machine.hazards.unmap(mapping, device);
                machine.space.unmap(mapping);
                if (mapping.block().unused()) {
                    machine.handles.forget(mapping.block().handle());
                }
            }
            charge(DriverCall.MEM_UNMAP, whole);
        });
    }

    /// Returns the mappings in a range, none of which may reach beyond it.
    private List<Mapping> wholeMappings(long address, long byteSize) {
        Mapping before = machine.space.mappingAt(address);
        require(before == null || before.address() == address);
        Mapping last = machine.space.mappingAt(address + byteSize - 1);
        require(last == null || last.end() == address + byteSize);
        return List.copyOf(
                machine.space.mappings().subMap(address, address + byteSize).values());
    }

    /// Charges a call on many handles as much as one call for each.
    private void charge(DriverCall call, List<Mapping> mappings) {
        for (Mapping mapping : mappings) {
            machine.spend(call, mapping.byteSize());
        }
        machine.engine.advance(Math.max(0, mappings.size() - 1) * machine.costs.nanos(call));
    }

    @Override
    public void setAccess(int device, long address, long byteSize, MemoryLocation accessor, AccessRights rights) {
        machine.run(DriverCall.MEM_SET_ACCESS, device, new Arguments(device, address, byteSize), () -> {
            require(byteSize > 0 && byteSize % GRANULARITY == 0);
            require(accessor.type() != MemoryLocation.Type.DEVICE
                    || (accessor.id() >= 0 && accessor.id() < machine.deviceCount()));
            List<Mapping> whole = wholeMappings(address, byteSize);
            // An H200 refuses a hole at the end. It accepts one in the middle, but sets no rights after it.
            require(!whole.isEmpty()
                    && whole.getFirst().address() == address
                    && whole.getLast().end() == address + byteSize);
            for (Mapping mapping : whole) {
                require(mapping.kind() == Mapping.Kind.VIRTUAL);
            }
            List<Mapping> together = withoutHole(whole);
            for (Mapping mapping : together) {
                mapping.ownRights().put(accessor, rights);
            }
            charge(DriverCall.MEM_SET_ACCESS, together);
        });
    }

    private static List<Mapping> withoutHole(List<Mapping> mappings) {
        int count = 1;
        while (count < mappings.size()
                && mappings.get(count).address() == mappings.get(count - 1).end()) {
            count++;
        }
        return mappings.subList(0, count);
    }

    @Override
    public AccessRights access(int device, long address, MemoryLocation accessor) {
        return machine.call(
                DriverCall.MEM_GET_ACCESS,
                device,
                new Arguments(device, address, 0),
                () -> virtualAt(address).rights(accessor));
    }

    @Override
    public long retainHandle(int device, long address) {
        return machine.call(DriverCall.MEM_RETAIN_ALLOCATION_HANDLE, device, new Arguments(device, address, 0), () -> {
            PhysicalBlock block = virtualAt(address).block();
            block.retain();
            return block.handle();
        });
    }

    private Mapping virtualAt(long address) {
        Mapping mapping = machine.space.mappingAt(address);
        require(mapping != null && mapping.kind() == Mapping.Kind.VIRTUAL);
        return java.util.Objects.requireNonNull(mapping);
    }

    private PhysicalBlock find(DriverCall call, int device, long handle) {
        return machine.handles.find(PhysicalBlock.class, handle, CudaResult.INVALID_VALUE, call, device);
    }
}
