package io.cistern.buffers;

import io.cistern.errors.UnusableStreamException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/// A block that several buffers hold; it is freed when the last of them is closed.
///
/// Invariant: `holders` is the number of open buffers with this lifetime; it is 0 exactly when the block was
/// freed.
final class SharedBlock implements Lifetime {
    private static final AtomicIntegerFieldUpdater<SharedBlock> HOLDERS =
            AtomicIntegerFieldUpdater.newUpdater(SharedBlock.class, "holders");

    private final long address;
    private final long byteSize;

    /// Where a buffer of 0 bytes begins if it grows, since its address is 0.
    private volatile long emptyAt;

    @SuppressWarnings("unused") // through HOLDERS
    private volatile int holders = 1;

    SharedBlock(long address, long byteSize) {
        this.address = address;
        this.byteSize = byteSize;
        this.emptyAt = address;
    }

    /// Notes where a buffer became empty.
    void emptied(long at) {
        emptyAt = at;
    }

    /// Returns where a buffer begins in the block.
    ///
    /// @param ofBuffer its address, 0 if it has 0 bytes
    long begin(long ofBuffer) {
        return ofBuffer == 0 ? emptyAt : ofBuffer;
    }

    /// Returns the bytes from a buffer's beginning to the end of the block.
    long capacityBytes(long ofBuffer) {
        return address + byteSize - begin(ofBuffer);
    }

    boolean hasOneHolder() {
        return holders == 1;
    }

    /// Adds a holder. The caller holds the block already.
    void retain() {
        HOLDERS.getAndAdd(this, 1);
    }

    @Override
    public long block(long ofBuffer) {
        return address;
    }

    @Override
    public void close(DeviceBuffer buffer, long ofBuffer) {
        if (HOLDERS.getAndAdd(this, -1) == 1) {
            free(buffer);
        }
    }

    private void free(DeviceBuffer last) {
        try {
            last.memory().free(address, last.stream());
        } catch (UnusableStreamException refused) {
            if (last.isFreeRefused()) {
                HOLDERS.getAndAdd(this, 1); // the buffer is open again
            }
            throw refused;
        }
    }

    /// The block waits for the event of each holder, whichever closes last.
    @Override
    public void closeAfter(DeviceBuffer buffer, long ofBuffer, long event) {
        buffer.memory().moduleSupport().recordUseUntil(address, event);
        close(buffer, ofBuffer);
    }
}
