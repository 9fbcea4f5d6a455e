package io.cistern.internal.registry;

import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.routing.Budgets;
import io.cistern.spi.DeviceAllocator;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jspecify.annotations.Nullable;

/// An open allocator as the upstream of allocators that the program builds on it. Its blocks are charged to
/// the allocator's own limit, and have no owner record: the allocator on top hands them out. The open
/// allocator is retained until this is closed and its last block is freed.
///
/// **Count.** Each thread counts in a cell of its own, since threads that share a counter wait for each other.
/// Both counts only grow, so if a reader adds up the ends first and finds as many beginnings, no block was alive
/// between the two.
///
/// **Threads.** Any.
final class BuiltOn extends SharedUpstream {
    private static final int CELLS = 16;

    /// Longs between cells: a cache line.
    private static final int CELL_STRIDE = 8;

    /// The places in a cell.
    private static final int BEGUN = 0;

    private static final int ENDED = 1;

    private final OpenAllocator allocator;
    private final AtomicLongArray counts = new AtomicLongArray(CELLS * CELL_STRIDE);
    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile boolean closed;

    /// @throws IllegalStateException if the allocator is closed
    BuiltOn(OpenAllocator allocator, DeviceAllocator backend) {
        super(backend);
        this.allocator = allocator;
        allocator.beginBuiltOn();
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        count(BEGUN); // before the read of `closed`, since a closing thread sets it before it counts
        long address = 0;
        try {
            if (closed) {
                throw allocator.closed();
            }
            address = allocateCharged(byteSize, device, stream);
            return address;
        } finally {
            if (address == 0) {
                endOne();
            }
        }
    }

    private long allocateCharged(long byteSize, int device, long stream) {
        Budgets charged = charged(device);
        if (charged == null) {
            long unlimited = super.allocate(byteSize, device, stream);
            allocator.countUnlimited(byteSize);
            return unlimited;
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

    /// Counts a failed free, too, as for every allocator, unless there was no such block.
    @Override
    public void free(long address, long byteSize, int device, long stream) {
        boolean freed = address != 0;
        try {
            super.free(address, byteSize, device, stream);
        } catch (UnknownAddressException unknown) {
            freed = false;
            throw unknown;
        } finally {
            if (freed) {
                Budgets charged = charged(device);
                if (charged != null) {
                    charged.giveBack(byteSize);
                } else {
                    allocator.countUnlimited(-byteSize);
                }
                endOne();
            }
        }
    }

    private @Nullable Budgets charged(int device) {
        allocator.checkedDevice(device);
        return allocator.limit() == null
                ? null
                : Budgets.of(null, allocator.limit().budget());
    }

    private void count(int place) {
        int cell = (int) Thread.currentThread().threadId() & (CELLS - 1);
        counts.getAndIncrement(cell * CELL_STRIDE + place);
    }

    private void endOne() {
        count(ENDED);
        endIfUnused();
    }

    private void endIfUnused() {
        if (closed && sum(ENDED) == sum(BEGUN) && ended.compareAndSet(false, true)) {
            allocator.endBuiltOn();
        }
    }

    private long sum(int place) {
        long sum = 0;
        for (int cell = 0; cell < CELLS; cell++) {
            sum += counts.get(cell * CELL_STRIDE + place);
        }
        return sum;
    }

    /// Refuses further allocations.
    @Override
    public void close() {
        closed = true;
        endIfUnused();
    }
}
