package io.cistern.internal.registry;

import io.cistern.internal.direct.DeviceReserves;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.Optional;

/// An allocator that is unaware of reserves: a plug-in, a C library, an object of the program. Whether a
/// call will obtain memory is not known before it. So while there is a reserve, the driver is asked around
/// each allocation, and a block that cut into the reserve is returned.
///
/// **Threads.** Any.
final class GuardedAllocator extends AllocatorAdaptor {
    private final DeviceReserves reserves;

    GuardedAllocator(DeviceAllocator allocator, DeviceReserves reserves) {
        super(allocator);
        this.reserves = reserves;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        return reserves.of(device) == 0
                ? upstream().allocate(byteSize, device, stream)
                : allocateBeyond(byteSize, device, stream);
    }

    private long allocateBeyond(long byteSize, int device, long stream) {
        long free = reserves.require(0, device);
        long address = upstream().allocate(byteSize, device, stream);
        try {
            reserves.requireKept(free, byteSize, device);
            return address;
        } catch (Throwable failure) {
            giveBackAfter(failure, address, byteSize, device, stream);
            throw failure;
        }
    }

    private void giveBackAfter(Throwable failure, long address, long byteSize, int device, long stream) {
        try {
            upstream().free(address, byteSize, device, stream);
            upstream().trim(device, 0);
        } catch (RuntimeException | Error second) {
            failure.addSuppressed(second);
        }
    }

    /// Returns only the allocator's own extensions, since this replaces the allocator everywhere.
    @Override
    public <T> Optional<T> extension(Class<T> type) {
        return upstream().extension(type);
    }

    @Override
    public void close() {
        upstream().close();
    }
}
