package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.PoolAttribute;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.direct.DeviceReserves;
import io.cistern.internal.names.Failures;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.MemoryStatistics;
import io.cistern.spi.StreamOrder;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/// The driver's stream-ordered allocator, on pools that the options choose: its own or another owner's.
///
/// The driver reuses memory within a stream and across streams. An allocation or a free is one driver call and
/// makes no garbage; one read shows that no rare case applies. A free also takes a lock that hardly any
/// other thread takes ([FreesUnderWay]).
final class AsyncAllocator implements DeviceAllocator, MemoryStatistics, MemoryReclaim, StreamUses, MemorySharing {
    /// Calls the driver, for all devices. A field of its own saves loads: the driver's locks delay a call until
    /// the loads before it have completed.
    private final MemoryPools memory;

    private final AsyncDevice[] devices;
    private final AsyncOptions options;

    /// Made in advance: closing needs no Java heap.
    private final Failures failures = new Failures();

    /// @param reserves the memory of devices that the pools leave to others
    AsyncAllocator(
            CudaDriver driver, int deviceCount, AsyncOptions options, StreamOrder order, DeviceReserves reserves) {
        this.options = options;
        this.memory = driver.pools();
        this.devices = new AsyncDevice[deviceCount];
        for (int device = 0; device < deviceCount; device++) {
            devices[device] = new AsyncDevice(driver, memory, device, options, order, reserves);
        }
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        AsyncDevice pools = devices[device];
        try {
            return pools.isPlain()
                    ? memory.allocateFrom(device, pools.pools.handle(byteSize, stream), byteSize, stream)
                    : pools.allocate(byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() != CudaResult.OUT_OF_MEMORY) {
                throw failure;
            }
            return pools.allocateOnceMore(byteSize, stream);
        } catch (DeviceOutOfMemoryException refused) {
            return pools.allocateOnceMore(byteSize, stream);
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        AsyncDevice pools = devices[device];
        synchronized (pools.frees.lockOfThread()) { // so that the stream does not end meanwhile
            if (pools.eventful) {
                pools.free(address, byteSize, stream);
                return;
            }
            try {
                memory.free(device, address, stream);
            } catch (CudaException failure) {
                pools.freeFailed(address, stream, failure);
            } catch (OutOfMemoryError ofTheHeap) {
                pools.freeNotMade(address, stream);
            }
        }
    }

    /// Returns whether threads take turns on a device now.
    boolean takesTurns(int device) {
        return devices[device].inTurns();
    }

    @Override
    public boolean recordUse(long address, int device, long stream) {
        return devices[device].recordUse(address, stream);
    }

    @Override
    public Availability grant(int device, int peer) {
        if (!options.pool().own()) {
            return Availability.no(
                    "async does not own pool=" + options.pool() + ": grant device " + peer + " access with PoolAccess");
        }
        if (!options.location().managed()) { // all devices can access managed memory
            devices[device].pools.openTo(peer);
        }
        return Availability.yes();
    }

    @Override
    public void streamClosing(int device, long stream) {
        devices[device].streamClosing(stream);
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        devices[device].pools.figuresAreRead();
        return OptionalLong.of(devices[device].pools.sum(PoolAttribute.RESERVED_CURRENT));
    }

    /// {@inheritDoc}
    ///
    /// The peaks of several pools do not add up to an exact one, and a reset must not change pools of others.
    @Override
    public OptionalLong reservedPeakBytes(int device) {
        return options.pool().own() && options.onePool()
                ? OptionalLong.of(devices[device].pools.sum(PoolAttribute.RESERVED_HIGH))
                : OptionalLong.empty();
    }

    /// {@inheritDoc}
    ///
    /// Only memory whose frees have completed can go back.
    @Override
    public long trim(int device, long keepBytes) {
        return devices[device].trim(keepBytes);
    }

    @Override
    public Optional<TrimResult> trim(int device, long keepBytes, TrimMode mode) {
        return Optional.of(devices[device].trim(keepBytes, mode));
    }

    @Override
    public Map<String, Long> statistics(int device) {
        return devices[device].statistics();
    }

    @Override
    public void resetPeaks(int device) {
        devices[device].pools.resetMark(PoolAttribute.RESERVED_HIGH);
        devices[device].pools.resetMark(PoolAttribute.USED_HIGH);
    }

    @Override
    public void resetTotals(int device) {
        devices[device].resetTotals();
    }

    @Override
    public void close() {
        for (AsyncDevice device : devices) {
            failures.gatherUnlessCaptured(device.closing);
        }
        failures.rethrow();
    }
}
