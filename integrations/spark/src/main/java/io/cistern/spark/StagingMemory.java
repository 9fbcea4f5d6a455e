package io.cistern.spark;

import io.cistern.DeviceMemory;
import io.cistern.buffers.PinnedBuffer;
import io.cistern.buffers.PinnedMemory;
import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicLong;

/// Provides host memory for copying rows to a device and back: pinned within a limit that all tasks of an
/// executor share, and pageable beyond it.
///
/// **Threads.** Any.
final class StagingMemory {
    private final DeviceMemory memory;
    private final long limitBytes;
    private final AtomicLong pinnedBytes = new AtomicLong();

    StagingMemory(DeviceMemory memory, long limitBytes) {
        this.memory = memory;
        this.limitBytes = limitBytes;
    }

    /// Returns memory with undefined bytes. The caller closes it.
    HostBlock take(long byteSize) {
        long charged = PinnedMemory.pinnedBytes(Math.max(1, byteSize));
        if (pinnedBytes.addAndGet(charged) <= limitBytes) {
            return pinned(byteSize, charged);
        }
        pinnedBytes.addAndGet(-charged);
        Arena arena = Arena.ofShared();
        return new HostBlock(arena.allocate(byteSize), arena::close);
    }

    private HostBlock pinned(long byteSize, long charged) {
        try {
            PinnedBuffer pinned = PinnedMemory.of(memory).allocate(byteSize);
            return new HostBlock(pinned.segment().asSlice(0, byteSize), () -> {
                pinned.close();
                pinnedBytes.addAndGet(-charged);
            });
        } catch (RuntimeException | Error refused) {
            pinnedBytes.addAndGet(-charged);
            throw refused;
        }
    }
}
