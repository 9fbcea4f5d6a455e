package io.cistern.internal.routing;

import io.cistern.internal.names.FailureNote;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.IntConsumer;

/// Calls to an allocator that are often about all allocators. A [note][FailureNote] with its name is added to what it
/// throws.
///
/// **Threads.** Any.
public final class AllocatorCalls {
    private AllocatorCalls() {}

    /// Returns the bytes that an allocator has reserved. `null`, which breaks the contract, counts as unknown.
    ///
    /// @param name its name for people
    public static OptionalLong reservedBytes(DeviceAllocator allocator, Object name, int device) {
        try {
            OptionalLong told = allocator.reservedBytes(device);
            return told == null ? OptionalLong.empty() : told;
        } catch (Throwable failure) {
            FailureNote.add(failure, "allocator " + name + " was asked for its reserved bytes on device " + device);
            throw failure;
        }
    }

    /// Trims an allocator. If it can't report reasons, the result has none.
    ///
    /// @param name its name for people
    /// @param synchronizing waits for the work of a device
    public static TrimResult trim(
            DeviceAllocator allocator,
            Object name,
            int device,
            long keepBytes,
            TrimMode mode,
            IntConsumer synchronizing) {
        try {
            return allocator
                    .extension(MemoryReclaim.class)
                    .flatMap(reclaim -> reclaim.trim(device, keepBytes, mode))
                    .orElseGet(() -> {
                        if (mode == TrimMode.SYNCHRONIZE) {
                            synchronizing.accept(device);
                        }
                        long returned = allocator.trim(device, keepBytes);
                        return new TrimResult(returned, reservedBytes(allocator, name, device), List.of());
                    });
        } catch (Throwable failure) {
            FailureNote.add(failure, "allocator " + name + " was trimming device " + device);
            throw failure;
        }
    }
}
