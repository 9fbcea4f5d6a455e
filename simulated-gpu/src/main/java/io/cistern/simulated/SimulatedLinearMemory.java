package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.LinearMemory;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.simulated.GraphMemory.GraphAllocation;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.HostContents;
import io.cistern.simulated.internal.memory.MemoryBudget;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// [LinearMemory] over the model.
final class SimulatedLinearMemory implements LinearMemory {
    private static final long HOST_ALIGNMENT = 512;

    private final Machine machine;
    private final SimulatedUnifiedMemory unified;
    /// Arenas of pinned memory by address; memory that was only registered has no arena.
    private final Map<Long, Arena> arenas = new HashMap<>();

    SimulatedLinearMemory(Machine machine, SimulatedUnifiedMemory unified) {
        this.machine = machine;
        this.unified = unified;
    }

    @Override
    public long allocate(int device, long byteSize) {
        return machine.call(DriverCall.MEM_ALLOC, device, () -> "device=" + device + ", byteSize=" + byteSize, () -> {
            require(byteSize != 0);
            DeviceState state = machine.device(device);
            failIf(byteSize < 0 || byteSize > state.budget.totalBytes(), CudaResult.OUT_OF_MEMORY);
            if (state.placement.needsChunk(byteSize)) {
                machine.engine.advance(machine.costs.chunkNanos());
            }
            long address = state.placement.allocate(byteSize);
            machine.space.add(Mapping.Kind.LINEAR, address, byteSize, device, null);
            return address;
        });
    }

    @Override
    public void free(int device, long address) {
        machine.run(DriverCall.MEM_FREE, device, "address", address, () -> {
            if (address == 0) {
                return;
            }
            Allocation allocation = liveAt(machine, DriverCall.MEM_FREE, device, address);
            if (allocation.kind() == Mapping.Kind.IMPORTED) {
                machine.drain(device);
                SimulatedSharing.unmap(machine, allocation);
                return;
            }
            if (allocation.kind() == Mapping.Kind.MANAGED) {
                for (int user = 0; user < machine.deviceCount(); user++) {
                    machine.drain(user);
                }
                unified.release(allocation);
                return;
            }
            GraphAllocation ofGraph = machine.graphMemory(device).findLive(address);
            if (ofGraph != null) {
                machine.drain(device);
                ofGraph.free(machine.device(device).legacy);
                return;
            }
            if (allocation.pool() != null) {
                SimulatedMemoryPools.freeNow(machine, allocation);
                return;
            }
            machine.drain(device);
            release(machine, allocation);
        });
    }

    /// Returns the live device allocation that starts at an address. If there is none, reports misuse and
    /// fails with INVALID_VALUE.
    static Allocation liveAt(Machine machine, DriverCall call, int device, long address) {
        Allocation allocation = machine.space.allocationStartingAt(address);
        if (allocation == null || allocation.kind() == Mapping.Kind.HOST) {
            machine.hazards.report(
                    Misuse.Kind.DOUBLE_FREE,
                    call,
                    device,
                    address,
                    "no live allocation starts at 0x" + Long.toHexString(address));
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
        return allocation;
    }

    static void release(Machine machine, Allocation allocation) {
        machine.space.remove(allocation);
        DeviceState home = machine.device(allocation.device());
        long chunkBytes = home.placement.free(allocation.address(), allocation.byteSize());
        if (chunkBytes > 0) {
            machine.engine.advance(machine.costs.chunkReleaseNanos(chunkBytes));
        }
    }

    @Override
    public MemoryInfo info(int device) {
        return machine.call(DriverCall.MEM_GET_INFO, device, () -> {
            MemoryBudget budget = machine.device(device).budget;
            return new MemoryInfo(budget.freeBytes(), budget.totalBytes());
        });
    }

    @Override
    public long freeBytes(int device) {
        return info(device).freeBytes();
    }

    @Override
    public AddressRange range(int device, long address) {
        return machine.call(DriverCall.MEM_GET_ADDRESS_RANGE, device, "address", address, () -> {
            Allocation allocation = machine.space.allocationAt(address);
            if (allocation != null) {
                return new AddressRange(allocation.address(), allocation.byteSize());
            }
            Mapping mapping = machine.space.mappingAt(address);
            if (mapping == null || mapping.kind() != Mapping.Kind.VIRTUAL || !mapping.allows(device, false)) {
                throw new DriverFailure(CudaResult.NOT_FOUND);
            }
            return new AddressRange(mapping.address(), mapping.byteSize());
        });
    }

    @Override
    public MemorySegment allocateHost(int device, long byteSize) {
        return machine.call(DriverCall.MEM_HOST_ALLOC, device, () -> "byteSize=" + byteSize, () -> {
            failIf(byteSize < 0 || byteSize > 1L << 46, CudaResult.OUT_OF_MEMORY);
            if (byteSize == 0) {
                return MemorySegment.NULL;
            }
            Arena arena = Arena.ofShared();
            MemorySegment memory;
            try {
                memory = arena.allocate(byteSize, HOST_ALIGNMENT);
            } catch (OutOfMemoryError nativeMemory) {
                arena.close();
                throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
            }
            pin(device, memory);
            arenas.put(memory.address(), arena);
            return memory;
        });
    }

    private void pin(int device, MemorySegment memory) {
        long address = memory.address();
        PhysicalBlock block = new PhysicalBlock(
                memory.byteSize(), new MemoryLocation(MemoryLocation.Type.HOST, 0), 0, new HostContents(memory), null);
        machine.space.map(new Mapping(Mapping.Kind.HOST, address, block, 0, _ -> AccessRights.READ_WRITE));
        machine.space.add(Mapping.Kind.HOST, address, memory.byteSize(), device, null);
    }

    @Override
    public void freeHost(int device, MemorySegment memory) {
        machine.run(DriverCall.MEM_FREE_HOST, device, "address", memory.address(), () -> {
            if (memory.address() == 0) {
                return;
            }
            require(arenas.containsKey(memory.address()));
            // Like cuMemFree: work that uses it ends first.
            machine.drain(device);
            Arena arena = arenas.remove(memory.address());
            require(arena != null);
            unpin(memory.address());
            Objects.requireNonNull(arena).close();
        });
    }

    private void unpin(long address) {
        Allocation allocation = machine.space.allocationStartingAt(address);
        Mapping mapping = machine.space.mappingAt(address);
        machine.space.remove(Objects.requireNonNull(allocation));
        machine.space.unmap(Objects.requireNonNull(mapping));
    }

    @Override
    @SuppressWarnings("restricted")
    public void registerHost(int device, MemorySegment memory) {
        machine.run(DriverCall.MEM_HOST_REGISTER, device, "address", memory.address(), () -> {
            require(memory.isNative() && memory.byteSize() > 0);
            failIf(
                    machine.space.anyMappingIn(memory.address(), memory.byteSize()),
                    CudaResult.HOST_MEMORY_ALREADY_REGISTERED);
            machine.spend(DriverCall.MEM_HOST_REGISTER, memory.byteSize());
            // Work runs on the thread that moves the clock, so it needs an unconfined segment.
            pin(device, MemorySegment.ofAddress(memory.address()).reinterpret(memory.byteSize()));
        });
    }

    @Override
    public void unregisterHost(int device, MemorySegment memory) {
        machine.run(DriverCall.MEM_HOST_UNREGISTER, device, "address", memory.address(), () -> {
            Allocation allocation = machine.space.allocationAt(memory.address());
            if (allocation == null || allocation.kind() != Mapping.Kind.HOST) {
                throw new DriverFailure(CudaResult.HOST_MEMORY_NOT_REGISTERED);
            }
            require(allocation.address() == memory.address() && !arenas.containsKey(memory.address()));
            machine.drain(device);
            unpin(memory.address());
        });
    }

    @Override
    public long attribute(int device, PointerAttribute attribute, long address) {
        return machine.call(
                DriverCall.POINTER_GET_ATTRIBUTE,
                device,
                () -> "device=" + device + ", " + attribute + ", address=0x" + Long.toHexString(address),
                () -> attributeAt(device, attribute, address));
    }

    void close() {
        arenas.values().forEach(Arena::close);
        arenas.clear();
    }

    /// Fails with INVALID_VALUE if the address belongs to no live allocation and no mapping of its own.
    private long attributeAt(int device, PointerAttribute attribute, long address) {
        Allocation allocation = machine.space.allocationAt(address);
        Mapping found = machine.space.mappingAt(address);
        require(found != null && (allocation != null || found.kind() == Mapping.Kind.VIRTUAL));
        Mapping mapping = Objects.requireNonNull(found);
        int home = allocation != null ? allocation.device() : Machine.homeOf(mapping.block(), device);
        PoolSimulation pool = allocation == null ? null : allocation.pool();
        return switch (attribute) {
            case CONTEXT ->
                switch (mapping.kind()) {
                    case LINEAR, HOST, MANAGED -> SimulatedDevices.contextOf(home);
                    default -> 0;
                };
            case MEMORY_TYPE -> mapping.block().location().type() == MemoryLocation.Type.DEVICE ? 2 : 1;
            case BUFFER_ID -> allocation != null ? allocation.bufferId() : mapping.bufferId();
            case IS_MANAGED -> allocation != null && allocation.isManaged() ? 1 : 0;
            case DEVICE_ORDINAL -> home;
            case RANGE_START ->
                allocation != null
                        ? allocation.address()
                        : reservationOf(mapping).getKey();
            case RANGE_SIZE ->
                allocation != null
                        ? allocation.byteSize()
                        : reservationOf(mapping).getValue();
            case MAPPED -> 1;
            case ALLOWED_HANDLE_TYPES ->
                pool != null ? pool.properties().handleTypes() : mapping.block().handleTypes();
            case ACCESS_FLAGS -> mapping.rights(MemoryLocation.device(device)).code();
            case MEMPOOL_HANDLE -> pool != null ? pool.handle() : 0;
        };
    }

    private Map.Entry<Long, Long> reservationOf(Mapping mapping) {
        return Objects.requireNonNull(machine.space.reservationAt(mapping.address()));
    }
}
