package io.cistern.async;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.ReservedPeak;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jspecify.annotations.Nullable;

/// The driver's stream-ordered allocator on one pool a device. The pools belong to this allocator alone, so the
/// settings of the devices' default pools, which other libraries may use, stay as they are.
///
/// Reuse, within a stream and across streams, is the driver's doing. Each call is one driver call, without garbage.
final class AsyncAllocator implements DeviceAllocator, ReservedPeak {
    private static final long NO_POOL = 0;

    private final CudaDriver driver;
    private final MemoryPools pools;
    private final ReleaseThreshold releaseThreshold;
    private final AtomicLongArray poolOfDevice;

    /// By device; written before the device's pool. Null where the threshold is fixed.
    private final @Nullable AdaptiveRelease[] adaptive;

    private final RefusedFrees refused;

    AsyncAllocator(CudaDriver driver, int deviceCount, ReleaseThreshold releaseThreshold) {
        this.driver = driver;
        this.pools = driver.pools();
        this.releaseThreshold = releaseThreshold;
        this.refused = new RefusedFrees(pools);
        this.poolOfDevice = new AtomicLongArray(deviceCount);
        this.adaptive = new AdaptiveRelease[deviceCount];
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long pool = poolOfDevice.get(device);
        if (pool == NO_POOL) {
            pool = openPool(device);
        }
        called(byteSize, device);
        refused.freeAgainOn(device, stream);
        try {
            return pools.allocateFrom(device, pool, byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            return allocateOnceMore(byteSize, device, pool, stream);
        }
    }

    /// Only memory whose frees have completed can be handed to another stream or go back to the device.
    private long allocateOnceMore(long byteSize, int device, long pool, long stream) {
        driver.devices().synchronize(device);
        refused.freeAgain(device);
        long returned = trim(device, 0);
        try {
            return pools.allocateFrom(device, pool, byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            String detail = "async has " + pools.attribute(device, pool, PoolAttribute.RESERVED_CURRENT)
                    + " bytes reserved, of which " + pools.attribute(device, pool, PoolAttribute.USED_CURRENT)
                    + " are allocated; tried: synchronising and trimming the pool (" + returned + " bytes)";
            throw new DeviceOutOfMemoryException(byteSize, device, detail, failure);
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        called(byteSize, device);
        refused.freeAgainOn(device, stream);
        try {
            pools.free(device, address, stream);
        } catch (CudaException failure) {
            if (!failure.result().endsContext()) {
                refused.add(device, address, stream, failure);
            }
        }
    }

    @Override
    public void streamClosing(int device, long stream) {
        refused.streamClosing(device, stream);
    }

    private void called(long byteSize, int device) {
        AdaptiveRelease release = adaptive[device];
        if (release != null) {
            release.called(byteSize);
        }
    }

    private synchronized long openPool(int device) {
        long pool = poolOfDevice.get(device);
        if (pool == NO_POOL) {
            pool = createPool(device);
            poolOfDevice.set(device, pool);
        }
        return pool;
    }

    private long createPool(int device) {
        long pool = pools.create(MemoryPoolProperties.onDevice(device));
        try {
            adaptive[device] = releaseThreshold.apply(driver, device, pool);
            return pool;
        } catch (RuntimeException | Error failure) {
            pools.destroy(device, pool);
            throw failure;
        }
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(attribute(device, PoolAttribute.RESERVED_CURRENT));
    }

    @Override
    public long reservedPeakBytes(int device) {
        return attribute(device, PoolAttribute.RESERVED_HIGH);
    }

    @Override
    public void resetReservedPeak(int device) {
        long pool = poolOfDevice.get(device);
        if (pool != NO_POOL) {
            pools.setAttribute(device, pool, PoolAttribute.RESERVED_HIGH, 0);
        }
    }

    /// What a pool says; a device without one has nothing reserved.
    private long attribute(int device, PoolAttribute attribute) {
        long pool = poolOfDevice.get(device);
        return pool == NO_POOL ? 0 : pools.attribute(device, pool, attribute);
    }

    /// {@inheritDoc}
    ///
    /// Only memory whose frees have completed can go. With the adaptive threshold, what is not held goes too.
    @Override
    public long trim(int device, long keepBytes) {
        long pool = poolOfDevice.get(device);
        if (pool == NO_POOL) {
            return 0;
        }
        AdaptiveRelease release = adaptive[device];
        long keptBytes = release == null ? keepBytes : Math.min(keepBytes, release.thresholdBytesNow());
        long before = pools.attribute(device, pool, PoolAttribute.RESERVED_CURRENT);
        pools.trimTo(device, pool, keptBytes);
        return Math.max(0, before - pools.attribute(device, pool, PoolAttribute.RESERVED_CURRENT));
    }

    @Override
    public void close() {
        for (int device = 0; device < poolOfDevice.length(); device++) {
            long pool = poolOfDevice.getAndSet(device, NO_POOL);
            if (pool != NO_POOL) {
                destroy(device, pool);
            }
        }
    }

    /// A context that died took its pools with it.
    private void destroy(int device, long pool) {
        try {
            driver.devices().synchronize(device);
            refused.freeAgain(device);
            pools.destroy(device, pool);
        } catch (CudaException failure) {
            if (!failure.result().endsContext()) {
                throw failure;
            }
        }
    }
}
