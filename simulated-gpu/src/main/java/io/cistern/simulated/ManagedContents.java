package io.cistern.simulated;

import org.jspecify.annotations.Nullable;

/// The bytes of managed memory, and how many of them are on a device.
///
/// Bytes are all in one place, since what is simulated of a move is that it takes and gives device memory: pages
/// are counted, not named. Invariant: `0 ≤ resident ≤ byteSize`, taken from `home`; 0 without one.
final class ManagedContents implements Contents {
    private final Contents bytes;
    private final long byteSize;
    private @Nullable MemoryBudget home;
    private long resident;

    ManagedContents(Contents bytes, long byteSize) {
        this.bytes = bytes;
        this.byteSize = byteSize;
    }

    /// Moves some bytes more to a device, as far as there is room beside what can't move; from another device all.
    void moveTo(MemoryBudget device, long wanted) {
        if (home != device) {
            leave(resident);
            home = device;
        }
        long missing = Math.min(wanted, byteSize) - resident;
        if (missing > 0) {
            device.makeRoom(missing, this);
            long moved = Math.min(missing, device.freeBytes());
            resident += moved;
            device.take(moved);
        }
        device.usedLast(this);
    }

    /// Moves bytes to the host.
    ///
    /// @return how many
    long leave(long wanted) {
        long moved = Math.min(wanted, resident);
        resident -= moved;
        if (home != null) {
            home.give(moved);
            if (resident == 0) {
                home.forget(this);
                home = null;
            }
        }
        return moved;
    }

    /// Ends with its memory.
    void end() {
        leave(resident);
    }

    @Override
    public void fill(long offset, long length, int word) {
        bytes.fill(offset, length, word);
    }

    @Override
    public void write(long offset, byte[] source, int sourceOffset, int length) {
        bytes.write(offset, source, sourceOffset, length);
    }

    @Override
    public void forEachRun(long offset, long length, RunSink sink) {
        bytes.forEachRun(offset, length, sink);
    }
}
