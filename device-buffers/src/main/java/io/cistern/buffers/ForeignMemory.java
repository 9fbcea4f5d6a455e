package io.cistern.buffers;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.buffers.internal.LastStreams;
import io.cistern.errors.AllocatorContractException;
import io.cistern.spi.DeviceAllocator;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Memory that other code allocated, metered under an allocator named `foreign`. Its blocks are the registered
/// ranges; freeing one removes its record and notifies its owner.
///
/// **Threads.** Any. Registrations run one at a time, since each passes its address through [#next].
final class ForeignMemory {
    static final String NAME = "foreign";

    private final DeviceMemory memory;

    /// Opened with the first block.
    private @Nullable Allocator allocator;

    /// The owners of the registered ranges, by address.
    private final Map<Long, DeviceBuffer.ForeignOwner> owners = new ConcurrentHashMap<>();

    /// The address that the next allocation returns; 0 outside [#register].
    private volatile long next;

    ForeignMemory(DeviceMemory memory) {
        this.memory = memory;
    }

    /// Registers a block that other code made.
    ///
    /// @return the address
    /// @throws IllegalArgumentException if no block can begin there, or a live block is there already
    synchronized long register(long address, long byteSize, int device, long stream, DeviceBuffer.ForeignOwner owner) {
        Objects.requireNonNull(owner, "owner");
        if (byteSize > 0 && (address <= 0 || address % 256 != 0)) {
            throw new IllegalArgumentException("0x" + Long.toHexString(address)
                    + " is not the start of a device allocation, which is a multiple of 256");
        }
        if (allocator == null || allocator.isClosed()) { // a program may close every allocator that it finds
            allocator = memory.open(OpenOptions.made(NAME, new Registered()));
        }
        next = address;
        try {
            long block = allocator.allocate(byteSize, device, stream);
            keep(block, stream, owner);
            return block;
        } catch (AllocatorContractException taken) {
            throw new IllegalArgumentException(
                    "0x" + Long.toHexString(address) + " is already registered, or was allocated by Cistern", taken);
        } finally {
            next = 0;
        }
    }

    private void keep(long block, long stream, DeviceBuffer.ForeignOwner owner) {
        if (block == 0) {
            return;
        }
        boolean kept = false;
        try {
            owners.put(block, owner);
            kept = true;
        } finally {
            if (!kept) {
                memory.free(block, stream);
            }
        }
    }

    @SuppressWarnings("CatchingUnchecked") // the block is closed, whatever its owner throws
    private void release(long address, long stream) {
        DeviceBuffer.ForeignOwner owner = owners.remove(address);
        if (owner == null) {
            return;
        }
        try {
            owner.release(address, stream);
        } catch (RuntimeException failure) {
            System.getLogger(ForeignMemory.class.getName())
                    .log(
                            Level.WARNING,
                            "the owner of foreign memory at 0x" + Long.toHexString(address) + " failed",
                            failure);
        }
    }

    private final class Registered implements DeviceAllocator {
        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (next == 0) {
                throw new UnsupportedOperationException("foreign memory can be registered, but not allocated here");
            }
            LastStreams.of(memory).opened(device, stream);
            return next;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            release(address, LastStreams.of(memory).streamFor(device, stream));
        }
    }
}
