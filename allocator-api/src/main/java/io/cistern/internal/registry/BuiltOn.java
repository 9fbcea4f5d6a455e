package io.cistern.internal.registry;

import io.cistern.internal.routing.Budgets;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// An open allocator as the upstream of allocators that the program builds on it. Its blocks are charged to
/// the allocator's own limit, and have no owner record: the allocator on top hands them out.
///
/// **Threads.** Any.
final class BuiltOn extends SharedUpstream {
    private final OpenAllocator allocator;
    private final AtomicBoolean closed = new AtomicBoolean();

    /// @throws IllegalStateException if the allocator is closed
    BuiltOn(OpenAllocator allocator, DeviceAllocator backend) {
        super(backend);
        this.allocator = allocator;
        allocator.beginBuiltOn();
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        if (closed.get()) {
            throw allocator.closed();
        }
        Budgets charged = charged(device);
        if (charged == null) {
            return super.allocate(byteSize, device, stream);
        }
        charged.take(allocator.route(device), byteSize);
        long address = 0;
        try {
            address = super.allocate(byteSize, device, stream);
            return address;
        } finally {
            if (address == 0) {
                charged.giveBack(byteSize);
            }
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        super.free(address, byteSize, device, stream);
        Budgets charged = charged(device);
        if (charged != null && address != 0) {
            charged.giveBack(byteSize);
        }
    }

    private @Nullable Budgets charged(int device) {
        allocator.checkedDevice(device);
        return allocator.limit() == null
                ? null
                : Budgets.of(null, allocator.limit().budget());
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            allocator.endBuiltOn();
        }
    }
}
