package io.cistern.async.sharing;

import io.cistern.async.internal.PoolHandle;
import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.util.stream.IntStream;

/// The access of other devices to the memory of one pool.
///
/// A pool has access rights of its own, which apply to all its memory, now and later. Neither
/// `cuCtxEnablePeerAccess` nor the rights of another pool change them. The more memory the pool has
/// reserved, the longer it takes to set the rights. If other devices have access, each later
/// reservation takes longer, too.
///
/// **Threads.** Any thread may call any method at any time. Calls on the access of an [ExportedPool] or
/// [ImportedPool] fail once that object has destroyed its pool.
public final class PoolAccess {
    private final CudaDriver driver;
    private final int device;
    private final PoolHandle pool;

    /// Creates the access of a pool, which must outlive this object.
    ///
    /// @param driver the driver
    /// @param device the ordinal of the pool's device
    /// @param pool the driver's handle of the pool
    public PoolAccess(CudaDriver driver, int device, long pool) {
        this(driver, device, new PoolHandle(driver.pools(), device, pool));
    }

    PoolAccess(CudaDriver driver, int device, PoolHandle pool) {
        this.driver = driver;
        this.device = device;
        this.pool = pool;
    }

    /// Returns the ordinal of the pool's device.
    public int device() {
        return device;
    }

    /// Returns the driver's handle of the pool.
    public long pool() {
        return pool.bare();
    }

    /// Lets a device read and write the pool's memory.
    ///
    /// @param peer the device's ordinal; for the pool's own device the call does nothing
    /// @throws SharingException [Reason#NOT_SUPPORTED] if `peer` can't reach the pool's device
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

    /// Revokes the access of a device. The device's work on the memory must have completed.
    ///
    /// @param peer the device's ordinal
    /// @throws IllegalArgumentException for the pool's own device
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public void revoke(int peer) {
        if (peer == device) {
            throw new IllegalArgumentException("device " + device + " always has access to its own pool");
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

    /// Returns the current access of a device.
    ///
    /// @param peer the device's ordinal
    /// @throws IllegalStateException if the pool is closed
    /// @throws io.cistern.cuda.CudaException if the driver refuses
    public AccessRights of(int peer) {
        return pool.access(peer).orElseThrow(this::closed);
    }

    /// Returns the ordinals of the devices that have access, the pool's own device first, if it has access.
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
