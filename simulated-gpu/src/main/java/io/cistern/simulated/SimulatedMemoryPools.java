package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;
import static io.cistern.simulated.internal.memory.DriverFailure.require;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.simulated.GraphMemory.GraphAllocation;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.space.Allocation;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.List;
import java.util.function.Supplier;

/// [MemoryPools] over the model.
final class SimulatedMemoryPools implements MemoryPools {
    private final Machine machine;

    SimulatedMemoryPools(Machine machine) {
        this.machine = machine;
    }

    @Override
    public long create(MemoryPoolProperties properties) {
        MemoryLocation location = properties.location();
        int device = location.type() == MemoryLocation.Type.DEVICE ? location.id() : 0;
        return machine.call(DriverCall.MEM_POOL_CREATE, device, properties::toString, () -> {
            check(properties);
            long handle = machine.handles.next();
            PoolSimulation pool = machine.device(device).newPool(handle, properties);
            machine.handles.put(handle, pool);
            if (pool.onHost()) {
                machine.poolOfAllDevices(pool);
            }
            return handle;
        });
    }

    /// Checks properties for a host with one NUMA node, and a device without IMEX channel and decompression
    /// engine.
    private static void check(MemoryPoolProperties properties) {
        MemoryLocation location = properties.location();
        require(properties.maxByteSize() >= 0);
        require(location.type() != MemoryLocation.Type.HOST_NUMA_CURRENT);
        require(location.type() != MemoryLocation.Type.HOST_NUMA || location.id() == 0);
        failIf((properties.handleTypes() & HandleType.FABRIC.bit()) != 0, CudaResult.NOT_PERMITTED);
        require(!properties.managed() || properties.handleTypes() == 0);
        failIf(properties.hardwareDecompress(), CudaResult.NOT_SUPPORTED);
    }

    @Override
    public void destroy(int device, long pool) {
        run(DriverCall.MEM_POOL_DESTROY, device, pool, found -> {
            DeviceState state = machine.device(found.device());
            require(found != state.defaultPool);
            if (state.currentPool == found) {
                state.currentPool = state.defaultPool;
            }
            found.destroy();
            machine.handles.forget(pool);
            found.synchronised(machine.synchronisedClock);
            machine.forgetIfGone(found);
        });
    }

    @Override
    public long defaultPool(int device) {
        return machine.call(
                DriverCall.DEVICE_GET_DEFAULT_MEM_POOL,
                device,
                () -> machine.device(device).defaultPool.handle());
    }

    @Override
    public long currentPool(int device) {
        return machine.call(
                DriverCall.DEVICE_GET_MEM_POOL,
                device,
                () -> machine.device(device).currentPool.handle());
    }

    @Override
    public void setCurrentPool(int device, long pool) {
        run(DriverCall.DEVICE_SET_MEM_POOL, device, pool, found -> {
            require(found.device() == device);
            machine.device(device).currentPool = found;
        });
    }

    @Override
    public long allocate(int device, long byteSize, long stream) {
        return allocate(DriverCall.MEM_ALLOC_ASYNC, device, byteSize, stream, () -> machine.device(device).currentPool);
    }

    @Override
    public long allocateFrom(int device, long pool, long byteSize, long stream) {
        DriverCall call = DriverCall.MEM_ALLOC_FROM_POOL_ASYNC;
        return allocate(call, device, byteSize, stream, () -> find(call, device, pool));
    }

    private long allocate(DriverCall call, int device, long byteSize, long stream, Supplier<PoolSimulation> from) {
        return machine.call(call, device, () -> describe(device, byteSize, stream), () -> {
            StreamQueue queue = machine.streams.find(call, device, stream);
            PoolSimulation pool = from.get();
            if (byteSize == 0) {
                return 0L;
            }
            failIf(byteSize < 0 || byteSize > mostBytes(pool), CudaResult.OUT_OF_MEMORY);
            Capture capture = machine.captures.of(queue);
            if (capture != null) {
                capture.allocate(queue, byteSize);
                return capture.graph.latest().address;
            }
            machine.captures.checkUnsafe();
            machine.streams.order(queue);
            long before = pool.reserved();
            long address = pool.allocate(
                    byteSize,
                    queue,
                    machine.synchronisedClock,
                    work -> machine.streams.enqueue(queue, Work.waitingFor(List.of(work))));
            long pages = (pool.reserved() - before) / PoolSimulation.PAGE_BYTES;
            machine.engine.advance(pages * machine.costs.poolPageNanos());
            machine.space.add(Mapping.Kind.POOL, address, byteSize, pool.device(), pool, queue);
            return address;
        });
    }

    private long mostBytes(PoolSimulation pool) {
        return pool.onHost() || pool.properties().managed()
                ? pool.addressBytes()
                : machine.device(pool.device()).budget.totalBytes();
    }

    @Override
    public void free(int device, long address, long stream) {
        DriverCall call = DriverCall.MEM_FREE_ASYNC;
        machine.run(call, device, () -> describe(device, address, stream), () -> {
            StreamQueue queue = machine.streams.find(call, device, stream);
            if (address == 0) {
                return;
            }
            Capture capture = machine.captures.of(queue);
            if (capture != null) {
                capture.free(queue, address);
                return;
            }
            machine.captures.checkUnsafe();
            Allocation allocation = SimulatedLinearMemory.liveAt(machine, call, device, address);
            machine.streams.order(queue);
            GraphAllocation ofGraph = machine.graphMemory(device).findLive(address);
            if (ofGraph != null) {
                ofGraph.free(queue);
                return;
            }
            machine.hazards.free(call, queue, allocation);
            if (allocation.kind() == Mapping.Kind.IMPORTED) {
                SimulatedSharing.free(machine, allocation, queue);
                return;
            }
            if (allocation.pool() == null) {
                machine.space.remove(allocation);
                machine.streams.enqueue(queue, Work.of(0, () -> SimulatedLinearMemory.release(machine, allocation)));
                return;
            }
            free(machine, allocation, queue);
        });
    }

    private static void free(Machine machine, Allocation allocation, StreamQueue queue) {
        PoolSimulation pool = java.util.Objects.requireNonNull(allocation.pool());
        machine.space.remove(allocation);
        machine.streams.enqueue(queue, Work.marker());
        pool.free(allocation.address(), allocation.byteSize(), queue);
    }

    /// Frees pool memory by `cuMemFree`: does not wait, and acts like a free on the stream of the allocation,
    /// except that the pool still counts the bytes as used (as seen on an H200).
    static void freeNow(Machine machine, Allocation allocation) {
        free(machine, allocation, java.util.Objects.requireNonNull(allocation.stream()));
        java.util.Objects.requireNonNull(allocation.pool()).countAsUsed(allocation.byteSize());
    }

    @Override
    public long attribute(int device, long pool, PoolAttribute attribute) {
        DriverCall call = DriverCall.MEM_POOL_GET_ATTRIBUTE;
        return machine.call(
                call,
                device,
                () -> attribute + " of pool " + pool,
                () -> find(call, device, pool).attribute(attribute));
    }

    @Override
    public void setAttribute(int device, long pool, PoolAttribute attribute, long value) {
        run(DriverCall.MEM_POOL_SET_ATTRIBUTE, device, pool, found -> found.setAttribute(attribute, value));
    }

    @Override
    public void trimTo(int device, long pool, long keepBytes) {
        run(
                DriverCall.MEM_POOL_TRIM_TO,
                device,
                pool,
                found -> machine.engine.advance(found.releaseDownTo(keepBytes) * machine.costs.poolPageReleaseNanos()));
    }

    @Override
    public void setAccess(int device, long pool, int peer, AccessRights rights) {
        run(DriverCall.MEM_POOL_SET_ACCESS, device, pool, found -> {
            machine.requireDevice(peer);
            boolean isOwn = !found.onHost() && peer == found.device();
            failIf(isOwn && rights == AccessRights.NONE, CudaResult.INVALID_DEVICE);
            failIf(rights == AccessRights.READ, CudaResult.NOT_SUPPORTED);
            found.setRights(peer, rights);
        });
    }

    @Override
    public AccessRights access(int device, long pool, int peer) {
        DriverCall call = DriverCall.MEM_POOL_GET_ACCESS;
        return machine.call(call, device, () -> "pool=" + pool + ", peer=" + peer, () -> {
            require(peer >= 0 && peer < machine.deviceCount());
            return find(call, device, pool).rights(MemoryLocation.device(peer));
        });
    }

    private void run(DriverCall call, int device, long pool, java.util.function.Consumer<PoolSimulation> body) {
        machine.run(
                call, device, () -> "device=" + device + ", pool=" + pool, () -> body.accept(find(call, device, pool)));
    }

    private PoolSimulation find(DriverCall call, int device, long pool) {
        return machine.handles.find(PoolSimulation.class, pool, CudaResult.INVALID_VALUE, call, device);
    }

    private static String describe(int device, long value, long stream) {
        return "device=" + device + ", 0x" + Long.toHexString(value) + ", stream=0x" + Long.toHexString(stream);
    }
}
