package io.cistern.async.sharing;

import io.cistern.async.internal.PoolHandle;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.util.stream.IntStream;

/// What other devices may do with the memory of one pool.
///
/// Pools have rights of their own, for the pool as a whole: for what is allocated and what will be. Neither
/// `cuCtxEnablePeerAccess` nor the rights of another pool change them. They cost when they are set, for what
/// the pool has reserved then, and for each piece that it reserves later.
///
/// **Threads.** Any. What an [ExportedPool] or [ImportedPool] gave fails once that has destroyed its pool.
public final class PoolAccess {
    private final CudaDriver driver;
    private final int device;
    private final PoolHandle pool;

    /// Of a pool that outlives this object.
    ///
    /// @param driver the driver
    /// @param device the device that the pool is on
    /// @param pool its handle
    public PoolAccess(CudaDriver driver, int device, long pool) {
        this(driver, device, new PoolHandle(driver.pools(), device, pool));
    }

    PoolAccess(CudaDriver driver, int device, PoolHandle pool) {
        this.driver = driver;
        this.device = device;
        this.pool = pool;
    }

    /// The device that the pool is on.
    public int device() {
        return device;
    }

    /// The handle of the pool.
    public long pool() {
        return pool.bare();
    }

    /// Lets a device read and write the pool's memory.
    ///
    /// @param peer the device's ordinal; the pool's own does nothing
    /// @throws SharingException [Reason#NOT_SUPPORTED] if that device can't reach this one
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void grant(int peer) {
        if (peer == device) {
            return;
        }
        if (!driver.peers().canAccess(/* device= */ peer, /* peer= */ device)) {
            throw new SharingException(
                    Reason.NOT_SUPPORTED,
                    "device " + peer + " can't reach the memory of device " + device
                            + ": there is no NVLink or PCIe path between them that the driver uses; copy instead");
        }
        set(peer, AccessRights.READ_WRITE);
    }

    /// Takes the access of a device back. Work that uses it must have ended.
    ///
    /// @param peer the device's ordinal
    /// @throws IllegalArgumentException for the pool's own device
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void revoke(int peer) {
        if (peer == device) {
            throw new IllegalArgumentException("device " + device + " keeps the access to its own pool");
        }
        set(peer, AccessRights.NONE);
    }

    private void set(int peer, AccessRights rights) {
        if (!pool.setAccess(peer, rights)) {
            throw closed();
        }
    }

    private IllegalStateException closed() {
        return new IllegalStateException("pool 0x" + Long.toHexString(pool.bare()) + " is closed");
    }

    /// What a device may do now.
    ///
    /// @param peer the device's ordinal
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public AccessRights of(int peer) {
        return pool.access(peer).orElseThrow(this::closed);
    }

    /// The devices that may read, the pool's own first if it may.
    ///
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public int[] devices() {
        IntStream others = IntStream.range(0, driver.devices().count()).filter(peer -> peer != device);
        return IntStream.concat(IntStream.of(device), others)
                .filter(peer -> of(peer) != AccessRights.NONE)
                .toArray();
    }
}
