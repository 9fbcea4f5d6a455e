package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.errors.AllocatorContractException;
import io.cistern.spi.DeviceAllocator;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Memory that others made, metered as of an allocator named `foreign`: its blocks are what is registered, and
/// freeing one ends nothing but its record.
///
/// **Threads.** Any; registrations happen one after the other, since each goes through the allocator's route.
final class ForeignMemory {
    static final String NAME = "foreign";

    private final Function<DeviceAllocator, Allocator> opening;

    /// Opened with the first block.
    private @Nullable Allocator allocator;

    /// What the next allocation is to return.
    private long next;

    ForeignMemory(Function<DeviceAllocator, Allocator> opening) {
        this.opening = opening;
    }

    /// Makes a block of somebody else's known.
    ///
    /// @return the address
    /// @throws IllegalArgumentException if that can't be the beginning of a block, or there is one
    synchronized long register(long address, long byteSize, int device, long stream) {
        if (byteSize > 0 && (address <= 0 || address % 256 != 0)) {
            throw new IllegalArgumentException("0x" + Long.toHexString(address)
                    + " is not the beginning of an allocation of device memory: those are multiples of 256");
        }
        if (allocator == null) {
            allocator = opening.apply(new Registered());
        }
        next = address;
        try {
            return allocator.allocate(byteSize, device, stream);
        } catch (AllocatorContractException taken) {
            throw new IllegalArgumentException(
                    "0x" + Long.toHexString(address) + " is registered already, or was made by Cistern", taken);
        }
    }

    private final class Registered implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            return next;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
