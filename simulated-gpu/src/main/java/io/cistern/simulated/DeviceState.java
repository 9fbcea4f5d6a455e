package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.simulated.internal.memory.Contents;
import io.cistern.simulated.internal.memory.HostContents;
import io.cistern.simulated.internal.memory.LinearPlacement;
import io.cistern.simulated.internal.memory.MemoryBudget;
import io.cistern.simulated.internal.memory.NativeRange;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.pool.PoolSimulation;
import io.cistern.simulated.internal.space.AddressSpace;
import io.cistern.simulated.internal.space.Mapping;
import io.cistern.simulated.internal.stream.StreamQueue;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// One simulated device with its primary context: memory, default streams, pools, peers, and the sticky error.
final class DeviceState implements LinearPlacement.Chunks, PoolSimulation.Pages {
    private final int ordinal;
    final MemoryBudget budget;
    private final AddressSpace space;
    final LinearPlacement placement = new LinearPlacement(this);
    final StreamQueue legacy;
    final PoolSimulation defaultPool;
    final Set<PoolSimulation> pools = new LinkedHashSet<>();
    private final Map<PoolSimulation, NativeRange> nativePools = new HashMap<>();

    /// The devices that have enabled access to this one.
    final BitSet reachableBy = new BitSet();

    PoolSimulation currentPool;

    @Nullable
    CudaResult stickyError;

    /// Whether any call has needed the primary context.
    boolean isUsed;

    DeviceState(int ordinal, MemoryBudget budget, AddressSpace space, StreamQueue legacy, long defaultPoolHandle) {
        this.ordinal = ordinal;
        this.budget = budget;
        this.space = space;
        this.legacy = legacy;
        this.defaultPool = newPool(defaultPoolHandle, MemoryPoolProperties.onDevice(ordinal));
        this.currentPool = defaultPool;
    }

    PoolSimulation newPool(long handle, MemoryPoolProperties properties) {
        long addressBytes = poolAddressBytes();
        NativeRange range =
                isSeenByTheHost(properties) ? NativeRange.map(addressBytes, PoolSimulation.PAGE_BYTES) : null;
        long base = range != null
                ? range.memory().address()
                : space.takeAddresses(addressBytes, PoolSimulation.PAGE_BYTES, 0);
        PoolSimulation pool = new PoolSimulation(handle, ordinal, properties, base, addressBytes, this);
        if (range != null) {
            nativePools.put(pool, range);
        }
        pools.add(pool);
        return pool;
    }

    /// Returns whether the host reads and writes the pool's memory at its addresses.
    private static boolean isSeenByTheHost(MemoryPoolProperties properties) {
        return properties.managed()
                || (properties.location().type() != MemoryLocation.Type.DEVICE && properties.handleTypes() == 0);
    }

    /// Returns the size of a new pool's address range. It has room for all that the pool could hold: twice
    /// the device's memory, to allow for gaps. Once hundreds of pools have taken most addresses, a further
    /// pool gets a small part of the free ones.
    private long poolAddressBytes() {
        long wanted = 2 * budget.totalBytes() + PoolSimulation.PAGE_BYTES;
        long left = space.freeBytes();
        return LinearPlacement.roundUp(
                wanted <= left / 4 ? wanted : Math.min(wanted, left / 256), PoolSimulation.PAGE_BYTES);
    }

    void returnAddresses(PoolSimulation pool) {
        NativeRange range = nativePools.remove(pool);
        if (range != null) {
            range.close();
        } else {
            space.returnAddresses(pool.base(), pool.addressBytes());
        }
        pool.closeStore();
    }

    @Override
    public long map(long byteSize) {
        PhysicalBlock block = PhysicalBlock.onDevice(ordinal, byteSize, budget);
        long address = space.takeAddresses(byteSize, LinearPlacement.CHUNK_BYTES, 0);
        space.map(new Mapping(Mapping.Kind.LINEAR, address, block, 0, this::linearRights));
        return address;
    }

    private AccessRights linearRights(MemoryLocation accessor) {
        boolean allowed = accessor.type() == MemoryLocation.Type.DEVICE
                && (accessor.id() == ordinal || reachableBy.get(accessor.id()));
        return allowed ? AccessRights.READ_WRITE : AccessRights.NONE;
    }

    @Override
    public void unmap(long address) {
        Mapping mapping = java.util.Objects.requireNonNull(space.mappingAt(address));
        space.unmap(mapping);
        if (mapping.kind() == Mapping.Kind.LINEAR) {
            space.returnAddresses(address, mapping.byteSize());
        }
    }

    @Override
    public void map(PoolSimulation pool, long address) {
        failIf(pool.isImported(), CudaResult.NOT_SUPPORTED);
        space.map(new Mapping(Mapping.Kind.POOL, address, newPage(pool, address), 0, pool::rights));
    }

    private PhysicalBlock newPage(PoolSimulation pool, long address) {
        if (pool.isExportable()) {
            Contents contents = new HostContents(pool.store().map(address - pool.base(), PoolSimulation.PAGE_BYTES));
            return new PhysicalBlock(PoolSimulation.PAGE_BYTES, MemoryLocation.device(ordinal), 0, contents, budget);
        }
        NativeRange range = nativePools.get(pool);
        if (range != null) {
            MemorySegment page = range.memory().asSlice(address - pool.base(), PoolSimulation.PAGE_BYTES);
            if (pool.onHost()) {
                return new PhysicalBlock(
                        PoolSimulation.PAGE_BYTES, pool.properties().location(), 0, new HostContents(page), null);
            }
            return PhysicalBlock.managed(ordinal, PoolSimulation.PAGE_BYTES, new HostContents(page));
        }
        return pool.onHost()
                ? PhysicalBlock.onHost(pool.properties().location(), PoolSimulation.PAGE_BYTES)
                : PhysicalBlock.onDevice(ordinal, PoolSimulation.PAGE_BYTES, budget);
    }

    /// Makes all later calls that need the context fail.
    void poison(CudaResult error) {
        if (stickyError == null) {
            stickyError = error;
        }
    }

    void close() {
        pools.forEach(PoolSimulation::closeStore);
        nativePools.values().forEach(NativeRange::close);
        nativePools.clear();
    }
}
