package io.cistern.simulated.internal.memory;

import java.util.BitSet;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The bytes of managed memory, and which of its pages are on a device.
///
/// The bytes themselves stay in place; a simulated move only takes and returns device memory. Invariant:
/// `PAGE_BYTES` of `home` are taken for each page in `resident`, which is empty without a home.
public final class ManagedContents implements Contents {
    public static final long PAGE_BYTES = 64 << 10;

    private final Contents bytes;
    private final BitSet resident = new BitSet();
    private final ManagedAdvice advice = new ManagedAdvice();
    private @Nullable MemoryBudget home;

    ManagedContents(Contents bytes) {
        this.bytes = bytes;
    }

    public ManagedAdvice advice() {
        return advice;
    }

    /// Moves the pages of a range to a device until no room is left. All pages on another device leave it.
    /// To make room, pages of other memory are evicted first, then pages of this memory.
    public void moveTo(MemoryBudget device, long offset, long length) {
        if (home != device) {
            end();
            home = device;
        }
        device.usedLast(this);
        int last = (int) ((offset + length - 1) / PAGE_BYTES);
        for (int page = (int) (offset / PAGE_BYTES); page <= last; page++) {
            if (!resident.get(page)) {
                device.makeRoom(PAGE_BYTES, this);
                if (!device.has(PAGE_BYTES)) {
                    evict(PAGE_BYTES);
                }
                if (!device.has(PAGE_BYTES)) {
                    return;
                }
                device.take(PAGE_BYTES);
                resident.set(page);
            }
        }
    }

    public void leave(long offset, long length) {
        int last = (int) ((offset + length - 1) / PAGE_BYTES);
        for (int page = resident.nextSetBit((int) (offset / PAGE_BYTES));
                page >= 0 && page <= last;
                page = resident.nextSetBit(page + 1)) {
            leave(page);
        }
    }

    private void leave(int page) {
        resident.clear(page);
        Objects.requireNonNull(home).give(PAGE_BYTES);
    }

    /// Moves pages that hold this many bytes to the host, in address order, until none is left.
    void evict(long wanted) {
        long left = wanted;
        for (int page = resident.nextSetBit(0); page >= 0 && left > 0; page = resident.nextSetBit(page)) {
            leave(page);
            left -= PAGE_BYTES;
        }
    }

    void end() {
        if (home != null) {
            evict(Long.MAX_VALUE);
            home.forget(this);
            home = null;
        }
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
