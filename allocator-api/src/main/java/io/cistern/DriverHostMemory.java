package io.cistern;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DeadContext;
import io.cistern.internal.threads.NodeQueue;
import io.cistern.spi.HostMemory;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Allocates pinned host memory with one driver call per block, for programs without a cache of pinned memory. A
/// block that the driver refuses to unpin is *owed*: each later allocation and close of a block tries again, and so
/// does the end of the device memory.
///
/// **Threads.** Any.
final class DriverHostMemory implements HostMemory, AutoCloseable {
    private final CudaDriver driver;
    private final NodeQueue<Block> owed = new NodeQueue<>();

    DriverHostMemory(CudaDriver driver) {
        this.driver = driver;
    }

    /// Pins the block in the context of a device that is in use already, so that no other device gets a context
    /// for it. All devices can access the block.
    @Override
    public HostBlock allocate(long byteSize) {
        close();
        int device = 0;
        while (device < driver.devices().count() && !driver.devices().isUsed(device)) {
            device++;
        }
        int used = device < driver.devices().count() ? device : 0;
        return new Block(this, used, byteSize);
    }

    /// Unpins the blocks that are owed, up to the first that the driver refuses again.
    @Override
    public void close() {
        for (NodeQueue.Node<Block> node = owed.poll(); node != null; node = owed.poll()) {
            if (node.value().refusal() != null) {
                owed.add(node);
                return;
            }
        }
    }

    private void giveBack(Block block) {
        CudaException refusal = block.refusal();
        if (refusal == null) {
            close();
            return;
        }
        owed.add(block.node);
        System.getLogger(DriverHostMemory.class.getName())
                .log(Level.WARNING, block.segment + " stays pinned for now", refusal);
    }

    private static final class Block implements HostBlock {
        private final DriverHostMemory home;
        private final int device;
        private final MemorySegment segment;
        private final NodeQueue.Node<Block> node = new NodeQueue.Node<>(this);

        Block(DriverHostMemory home, int device, long byteSize) {
            this.home = home;
            this.device = device;
            this.segment = home.driver.memory().allocateHost(device, byteSize);
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        /// Unpins the block.
        ///
        /// @return why the driver refuses it, or null
        @Nullable
        CudaException refusal() {
            return DeadContext.refusal(() -> home.driver.memory().freeHost(device, segment));
        }

        @Override
        public void close() {
            home.giveBack(this);
        }
    }
}
