package io.cistern.async;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Streams;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.internal.names.Failures;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.StreamUses;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Allocations and frees on captured streams: nodes of the graph, for whose memory the driver itself cares. Several
/// captures may be under way at once, each with nodes of its own.
///
/// 1. An allocation on a captured stream becomes a node; its address is fixed.
/// 2. A free on a stream of the same capture becomes a node too, unless other streams use the block, whose order with
/// that node nobody promised.
/// 3. Other frees are book-keeping: the memory is there after a launch until the next one, or until the graph is
/// gone. **So instantiate a graph that keeps memory with `freesOnLaunch`**, or the driver refuses its second launch.
/// 4. What launches left allocated is freed when the graphs are gone, or later by the program: the end of a graph
/// frees nothing.
///
/// **Threads.** Any.
final class GraphAllocations implements GraphAllocator, StreamUses {
    private final CudaDriver driver;

    /// Blocks without a free node. Changed under the lock of this.
    private final AddressTable<Block> unfreed = new AddressTable<>();

    private volatile boolean graphsAreGone;

    private final Set<Integer> devices = ConcurrentHashMap.newKeySet();

    private static final class Block extends AddressTable.Entry {
        final long captureId;
        final int device;
        volatile boolean usedElsewhere;

        /// Whether the program is done with it.
        volatile boolean done;

        Block(long address, long captureId, int device) {
            super(address);
            this.captureId = captureId;
            this.device = device;
        }
    }

    GraphAllocations(CudaDriver driver) {
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        devices.add(device);
        long capture = driver.graphs().captureId(device, stream);
        long address;
        try {
            address = driver.pools().allocate(device, byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw new DeviceOutOfMemoryException(byteSize, device, "the driver has none for a graph", failure);
            }
            throw failure;
        }
        try {
            add(new Block(address, capture, device));
        } catch (Error ofTheHeap) {
            driver.pools().free(device, address, stream);
            throw ofTheHeap;
        }
        return address;
    }

    private synchronized void add(Block block) {
        unfreed.add(block);
    }

    private synchronized void remove(Block block) {
        unfreed.remove(block);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Block block = unfreed.find(address);
        if (block == null) {
            return;
        }
        if (graphsAreGone) {
            freeWhatALaunchLeft(block, stream);
        } else if (block.usedElsewhere || !isFreeNode(block, stream)) {
            block.done = true;
        }
    }

    /// Makes the free a node, if the stream is in the capture of the allocation and the driver does not refuse. Another
    /// allocation of the graph that gets the address at once is added after that.
    private boolean isFreeNode(Block block, long stream) {
        try {
            if (driver.graphs().captureId(block.device, stream) != block.captureId) {
                return false;
            }
            synchronized (this) {
                driver.pools().free(block.device, block.address, stream);
                unfreed.remove(block);
            }
            return true;
        } catch (CudaException | OutOfMemoryError refused) {
            return false;
        }
    }

    /// Leaves it to the framework too, which makes the stream of the free wait: once the graphs are gone, the driver is
    /// to free the block behind that.
    @Override
    public boolean recordUse(long address, int device, long stream) {
        Block block = unfreed.find(address);
        if (block != null) {
            block.usedElsewhere = true;
        }
        return false;
    }

    /// What the driver keeps for all graphs of the device, of this process.
    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(driver.graphs().memory(device, GraphMemoryAttribute.RESERVED_CURRENT));
    }

    /// Gives back what no graph uses now.
    @Override
    public long trim(int device, long keepBytes) {
        return trim(driver, device, keepBytes);
    }

    /// Gives back what the driver keeps for graphs of a device and none uses now: of graphs that are gone too.
    static long trim(CudaDriver driver, int device, long keepBytes) {
        long before = driver.graphs().memory(device, GraphMemoryAttribute.RESERVED_CURRENT);
        if (before > keepBytes) {
            driver.graphs().trimMemory(device);
        }
        return Math.max(0, before - driver.graphs().memory(device, GraphMemoryAttribute.RESERVED_CURRENT));
    }

    /// Waits for the device: streams that the program named in its frees may still be busy. After a refusal the next
    /// call goes on with the rest.
    @Override
    public void graphsGone() {
        graphsAreGone = true;
        freeDone();
    }

    private void freeDone() {
        unfreed.forEach(block -> {
            if (block.done) {
                DeadContext.survive(() -> driver.devices().synchronize(block.device));
                freeWhatALaunchLeft(block, Streams.LEGACY_DEFAULT);
            }
        });
    }

    /// The driver keeps memory for the next graph that is launched until it is asked for it.
    @Override
    public void close() {
        Failures failures = new Failures();
        failures.gather(this::freeDone); // what a free could not do
        // What is refused stays for the next graph, or until async is trimmed.
        devices.forEach(device -> DeadContext.isDone(() -> driver.graphs().trimMemory(device)));
        failures.rethrow();
    }

    /// A block that could not be freed for lack of Java heap is freed when this closes.
    private void freeWhatALaunchLeft(Block block, long stream) {
        try {
            // Fails for what no launch has allocated.
            if (driver.memory().range(block.device, block.address).byteSize() > 0) {
                driver.pools().free(block.device, block.address, stream);
            }
        } catch (CudaException notAllocated) {
            // The graph was never launched, or its context is dead.
        } catch (OutOfMemoryError ofTheHeap) {
            block.done = true;
            return;
        }
        remove(block);
    }
}
