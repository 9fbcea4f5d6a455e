package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.Sharing;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.HostContents;
import io.cistern.simulated.internal.memory.LinearPlacement;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.memory.SharedEvent;
import io.cistern.simulated.internal.memory.SharedStore;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;

/// [Sharing] over the model, with real other processes: [SharedStore], [SharedEvent].
///
/// **Limits.** Each process has its own device and clock: memory of other processes takes nothing from its
/// capacity, and misuse across processes is not reported. There are no fabric handles.
final class SimulatedSharing implements Sharing, AutoCloseable {
    private static final long POINTER_MAGIC = 0x31_7274_7073_6943L;

    private final Machine machine;
    private final Set<SharedEvent> events = Collections.newSetFromMap(new WeakHashMap<>());

    SimulatedSharing(Machine machine) {
        this.machine = machine;
    }

    @Override
    public int exportPool(int device, long pool) {
        DriverCall call = DriverCall.MEM_POOL_EXPORT;
        return machine.call(call, device, "pool", pool, () -> {
            PoolSimulation found = pool(call, device, pool);
            require(found.isExportable());
            return found.export();
        });
    }

    @Override
    public byte[] exportPoolToFabric(int device, long pool) {
        DriverCall call = DriverCall.MEM_POOL_EXPORT;
        return machine.call(call, device, "pool", pool, () -> {
            pool(call, device, pool);
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        });
    }

    @Override
    public long importPool(int device, int fileDescriptor) {
        return machine.call(DriverCall.MEM_POOL_IMPORT, device, "fileDescriptor", fileDescriptor, () -> {
            SharedStore store = SharedStore.of(fileDescriptor);
            long handle = machine.handles.next();
            DeviceState state = machine.device(device);
            PoolSimulation pool = state.newPool(handle, MemoryPoolProperties.onDevice(device));
            pool.becomeImport(store);
            machine.handles.put(handle, pool);
            return handle;
        });
    }

    @Override
    public long importPoolFromFabric(int device, byte[] handle) {
        checkLength(handle);
        return machine.call(DriverCall.MEM_POOL_IMPORT, device, () -> {
            throw new DriverFailure(CudaResult.NOT_PERMITTED);
        });
    }

    @Override
    public byte[] exportPointer(int device, long address) {
        return machine.call(DriverCall.MEM_POOL_EXPORT_POINTER, device, "address", address, () -> {
            Allocation allocation = machine.space.allocationStartingAt(address);
            require(allocation != null && allocation.kind() == Mapping.Kind.POOL);
            PoolSimulation pool =
                    Objects.requireNonNull(Objects.requireNonNull(allocation).pool());
            require(pool.isExported());
            return ByteBuffer.allocate(HANDLE_BYTES)
                    .putLong(POINTER_MAGIC)
                    .putLong(pool.store().id())
                    .putLong(address - pool.base())
                    .putLong(allocation.byteSize())
                    .array();
        });
    }

    @Override
    public long importPointer(int device, long pool, byte[] pointer) {
        checkLength(pointer);
        DriverCall call = DriverCall.MEM_POOL_IMPORT_POINTER;
        return machine.call(call, device, "pool", pool, () -> {
            PoolSimulation found = pool(call, device, pool);
            require(found.isImported());
            SharedStore store = found.store();
            ByteBuffer named = ByteBuffer.wrap(pointer);
            require(named.getLong() == POINTER_MAGIC && named.getLong() == store.id());
            long offset = named.getLong();
            long byteSize = named.getLong();
            require(store.contains(offset, byteSize));
            return map(found, store.map(offset, byteSize));
        });
    }

    private long map(PoolSimulation pool, MemorySegment memory) {
        long byteSize = memory.byteSize();
        long address = machine.space.takeAddresses(rounded(byteSize), PoolSimulation.UNIT_BYTES, 0);
        PhysicalBlock block = new PhysicalBlock(
                byteSize, io.cistern.cuda.MemoryLocation.device(pool.device()), 0, new HostContents(memory), null);
        machine.space.map(new Mapping(Mapping.Kind.IMPORTED, address, block, 0, pool::rights));
        machine.space.add(Mapping.Kind.IMPORTED, address, byteSize, pool.device(), pool);
        return address;
    }

    private static long rounded(long byteSize) {
        return LinearPlacement.roundUp(byteSize, PoolSimulation.UNIT_BYTES);
    }

    /// Frees an imported pointer by `cuMemFreeAsync`.
    static void free(Machine machine, Allocation allocation, StreamQueue queue) {
        machine.space.remove(allocation);
        machine.streams.enqueue(queue, Work.of(0, () -> unmap(machine, allocation)));
    }

    static void unmap(Machine machine, Allocation allocation) {
        machine.space.remove(allocation);
        machine.space.unmap(Objects.requireNonNull(machine.space.mappingAt(allocation.address())));
        machine.space.returnAddresses(allocation.address(), rounded(allocation.byteSize()));
    }

    @Override
    public long createEvent(int device) {
        return machine.call(DriverCall.EVENT_CREATE, device, () -> register(device, SharedEvent.create()));
    }

    private long register(int device, SharedEvent event) {
        events.add(event);
        return machine.handles.register(new EventMark(device, false, event));
    }

    @Override
    public byte[] exportEvent(int device, long event) {
        DriverCall call = DriverCall.IPC_GET_EVENT_HANDLE;
        return machine.call(call, device, "event", event, () -> {
            SharedEvent shared =
                    machine.handles.find(EventMark.class, event, CudaResult.INVALID_HANDLE, call, device).shared;
            if (shared == null) {
                throw new DriverFailure(CudaResult.INVALID_HANDLE);
            }
            return shared.handle();
        });
    }

    @Override
    public long openEvent(int device, byte[] handle) {
        checkLength(handle);
        return machine.call(DriverCall.IPC_OPEN_EVENT_HANDLE, device, () -> register(device, SharedEvent.of(handle)));
    }

    @Override
    public byte[] legacyHandle(int device, long address) {
        return machine.call(
                DriverCall.IPC_GET_MEM_HANDLE,
                device,
                () -> "device=" + device + ", address=0x" + Long.toHexString(address) + ": " + ONLY_LINEAR,
                () -> {
                    Allocation allocation = machine.space.allocationAt(address);
                    require(allocation != null && allocation.kind() == Mapping.Kind.LINEAR);
                    return new byte[HANDLE_BYTES];
                });
    }

    private PoolSimulation pool(DriverCall call, int device, long pool) {
        return machine.handles.find(PoolSimulation.class, pool, CudaResult.INVALID_VALUE, call, device);
    }

    private static void checkLength(byte[] handle) {
        if (handle.length != HANDLE_BYTES) {
            throw new IllegalArgumentException("a handle of " + handle.length + " bytes, must have " + HANDLE_BYTES);
        }
    }

    /// Ends this machine's part in sharing; other processes keep the memory that they have mapped.
    @Override
    public void close() {
        events.forEach(SharedEvent::machineEnds);
        events.clear();
    }
}
