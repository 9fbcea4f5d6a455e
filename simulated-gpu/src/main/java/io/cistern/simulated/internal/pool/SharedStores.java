package io.cistern.simulated.internal.pool;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.simulated.internal.memory.Contents;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.memory.HostContents;
import io.cistern.simulated.internal.memory.MemoryBudget;
import io.cistern.simulated.internal.memory.PhysicalBlock;
import io.cistern.simulated.internal.memory.SharedStore;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The stores of a device's shared pools: those that other processes may see, and those of other processes.
/// Guarded by the machine's lock.
public final class SharedStores implements AutoCloseable {
    private final Map<PoolSimulation, SharedStore> stores = new HashMap<>();
    private final Set<PoolSimulation> imported = new HashSet<>();
    private final Set<PoolSimulation> exported = new HashSet<>();

    /// Returns the physical memory of a page, or null for a pool that is not shared.
    @Nullable
    public PhysicalBlock page(PoolSimulation pool, long address, MemoryBudget budget) {
        failIf(imported.contains(pool), CudaResult.NOT_SUPPORTED);
        if (!isExportable(pool)) {
            return null;
        }
        Contents contents = new HostContents(store(pool).map(address - pool.base(), PoolSimulation.PAGE_BYTES));
        return new PhysicalBlock(PoolSimulation.PAGE_BYTES, MemoryLocation.device(pool.device()), 0, contents, budget);
    }

    public static boolean isExportable(PoolSimulation pool) {
        return (pool.properties().handleTypes() & HandleType.POSIX_FILE_DESCRIPTOR.bit()) != 0;
    }

    /// Returns the store of a pool that was created for export, or imported.
    public SharedStore store(PoolSimulation pool) {
        DriverFailure.require(isExportable(pool) || imported.contains(pool));
        return stores.computeIfAbsent(pool, _ -> SharedStore.create());
    }

    public int export(PoolSimulation pool) {
        int descriptor = store(pool).export();
        exported.add(pool);
        return descriptor;
    }

    /// Returns whether the pool was exported; its pointers can be exported only after that.
    public boolean wasExported(PoolSimulation pool) {
        return exported.contains(pool);
    }

    public boolean isImported(PoolSimulation pool) {
        return imported.contains(pool);
    }

    public void addImported(PoolSimulation pool, SharedStore store) {
        imported.add(pool);
        stores.put(pool, store);
    }

    /// Forgets a pool that is gone; its mappings stay.
    public void remove(PoolSimulation pool) {
        imported.remove(pool);
        exported.remove(pool);
        SharedStore store = stores.remove(pool);
        if (store != null) {
            store.close();
        }
    }

    @Override
    public void close() {
        stores.values().forEach(SharedStore::close);
        stores.clear();
    }
}
