package io.cistern.pressure;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.spi.StreamOrder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Allocates pinned host memory within a limit. A block that a stream still uses is returned to the driver
/// once the stream has passed that use. Returning a block needs no Java heap.
///
/// **Invariant.** taken = bytes of all blocks that were taken and not yet given back to the driver ≤ limit.
///
/// **Threads.** Any, at any time.
final class HostMemory {
    private final CudaDriver driver;
    private final StreamOrder order;
    private final long limitBytes;
    private long takenBytes;

    /// The first of the blocks on their way back to the driver.
    private @Nullable Block returning;

    /// The driver's reason for the last block that it refused to take back.
    private @Nullable CudaException refusal;

    /// Pinned memory that was taken.
    static final class Block {
        final MemorySegment memory;
        private final int device;

        /// The fence after its last use, while it is on its way back; 0 if there is none.
        private long fence;

        private @Nullable Block next;

        private Block(int device, MemorySegment memory) {
            this.device = device;
            this.memory = memory;
        }
    }

    HostMemory(CudaDriver driver, StreamOrder order, long limitBytes) {
        this.driver = driver;
        this.order = order;
        this.limitBytes = limitBytes;
    }

    /// Takes memory; returns null if the limit or the driver has no more.
    synchronized @Nullable Block take(int device, long byteSize) {
        collect();
        if (byteSize > limitBytes - takenBytes) {
            return null;
        }
        try {
            // Java makes the object before it computes the arguments, so a full heap pins nothing.
            Block taken = new Block(device, driver.memory().allocateHost(device, byteSize));
            takenBytes += byteSize;
            return taken;
        } catch (CudaException refused) {
            return null;
        }
    }

    /// Returns whether the limit allows that many bytes at all.
    boolean canHold(long byteSize) {
        return byteSize <= limitBytes;
    }

    /// Gives back memory that nobody reads or writes any more. If the driver refuses now, a later call tries
    /// again.
    synchronized void giveBack(Block block) {
        block.next = returning;
        returning = block;
        collect();
    }

    /// Gives back memory once a stream has passed its present work.
    synchronized void giveBackAfter(long stream, Block block) {
        block.fence = order.record(block.device, stream);
        block.next = returning;
        returning = block;
    }

    private void collect() {
        Block kept = null;
        for (Block each = returning; each != null; each = each.next) {
            if (!isBack(each)) {
                kept = each;
            } else if (kept == null) {
                returning = each.next;
            } else {
                kept.next = each.next;
            }
        }
    }

    /// Continues a return as far as the driver allows.
    ///
    /// @return whether it is complete
    private boolean isBack(Block block) {
        if (!order.passed(block.device, block.fence)) {
            return false;
        }
        endFence(block);
        try {
            DeadContext.insist(() -> driver.memory().freeHost(block.device, block.memory));
        } catch (CudaException refused) {
            refusal = refused;
            return false;
        }
        takenBytes -= block.memory.byteSize();
        return true;
    }

    private void endFence(Block block) {
        order.release(block.device, block.fence);
        block.fence = 0;
    }

    /// A move of bytes between a device and a file.
    @FunctionalInterface
    interface Move<T> {
        /// Moves the bytes, one piece after the other.
        ///
        /// @param staging at most [SpillFile#PIECE_BYTES] of host memory, through which the bytes go
        T through(MemorySegment staging) throws IOException;
    }

    /// Moves bytes through a piece of pinned memory, or of ordinary memory if no pinned memory is left.
    ///
    /// @param stream the stream that copies to or from the piece
    <T> T staged(int device, long byteSize, long stream, Move<T> move) throws IOException {
        long pieceBytes = Math.min(byteSize, SpillFile.PIECE_BYTES);
        Block pinned = take(device, pieceBytes);
        if (pinned == null) {
            try (Arena arena = Arena.ofShared()) {
                return move.through(arena.allocate(pieceBytes));
            }
        }
        try {
            return move.through(pinned.memory);
        } finally {
            giveBackAfter(stream, pinned);
        }
    }

    /// Waits for all streams that still read, and gives everything back.
    ///
    /// @throws CudaException if the driver refuses; the next call gives the rest back
    synchronized void drain() {
        refusal = null;
        for (Block each = returning; each != null; each = each.next) {
            Block waiting = each;
            CudaException notWaited = DeadContext.refusal(() -> order.synchronize(waiting.device, waiting.fence));
            if (notWaited == null) {
                endFence(waiting);
            } else { // the fence is queried once more
                refusal = notWaited;
            }
        }
        collect();
        CudaException why = refusal;
        if (returning != null && why != null) {
            throw why;
        }
    }
}
