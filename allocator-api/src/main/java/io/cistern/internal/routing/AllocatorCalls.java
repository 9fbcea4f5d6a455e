package io.cistern.internal.routing;

import io.cistern.internal.names.FailureNote;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.MemoryReclaim;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntConsumer;

/// Calls that are often made to all allocators in turn. A [note][FailureNote] with the allocator's name is
/// added to its exceptions.
///
/// **Threads.** Any.
public final class AllocatorCalls {
    /// After so many names, no further breaches are logged.
    private static final int MAX_LOGGED = 100;

    /// The names of allocators whose breach was logged.
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    private AllocatorCalls() {}

    /// Returns the bytes that an allocator has reserved. `null` and negative bytes, which break the contract, count as
    /// unknown.
    ///
    /// @param name its name for messages
    public static OptionalLong reservedBytes(DeviceAllocator allocator, Object name, int device) {
        try {
            OptionalLong told = allocator.reservedBytes(device);
            return told == null ? OptionalLong.empty() : known(told, name, device);
        } catch (Throwable failure) {
            FailureNote.add(failure, "allocator " + name + " was asked for its reserved bytes on device " + device);
            throw failure;
        }
    }

    private static OptionalLong known(OptionalLong reserved, Object name, int device) {
        if (reserved.orElse(0) >= 0) {
            return reserved;
        }
        if (LOGGED.size() < MAX_LOGGED && LOGGED.add(name.toString())) {
            System.getLogger(AllocatorCalls.class.getName())
                    .log(
                            Level.WARNING,
                            "allocator " + name + " reported " + reserved.getAsLong() + " reservedBytes on device "
                                    + device + "; negative bytes count as unknown, and are not logged again");
        }
        return OptionalLong.empty();
    }

    /// Trims an allocator. Negative bytes given back count as none. If it can't report reasons, the result has none.
    ///
    /// @param name its name for messages
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
                    .map(told -> new TrimResult(
                            Math.max(0, told.returnedBytes()), known(told.reservedBytes(), name, device), told.left()))
                    .orElseGet(() -> {
                        if (mode == TrimMode.SYNCHRONIZE) {
                            synchronizing.accept(device);
                        }
                        long returned = Math.max(0, allocator.trim(device, keepBytes));
                        return new TrimResult(returned, reservedBytes(allocator, name, device), List.of());
                    });
        } catch (Throwable failure) {
            FailureNote.add(failure, "allocator " + name + " was trimming device " + device);
            throw failure;
        }
    }
}
