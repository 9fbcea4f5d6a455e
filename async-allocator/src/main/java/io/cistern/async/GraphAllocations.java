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
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Allocates and frees on captured streams. Both become nodes of the graph, and the driver manages the graph's
/// memory. Several captures may be under way at once, each with its own nodes.
///
/// 1. An allocation on a captured stream becomes a node; its address is fixed.
/// 2. A free on a stream of the same capture becomes a node too, unless other streams use the block, since
///    nothing orders their work with that node.
/// 3. Other frees are only recorded: the memory stays allocated from one launch until the next one, or until the
///    graph is gone. **So instantiate a graph that keeps memory with `freesOnLaunch`**, or the driver refuses its
///    second launch.
/// 4. Memory that launches left allocated is freed when the graphs are gone, or later by the program: the end
///    of a graph frees nothing.
/// 5. A block that the program frees on a stream that has ended is freed when the graphs are gone, or when this
///    allocator closes.
///
/// **Threads.** Any.
final class GraphAllocations implements GraphAllocator, StreamUses {
    private final CudaDriver driver;

    /// Blocks without a free node. Changed under the monitor of this.
    private final AddressTable<Block> unfreed = new AddressTable<>();

    private volatile boolean graphsAreGone;

    private final Set<Integer> devices = ConcurrentHashMap.newKeySet();

    /// The streams that have ended, and whether their handles are known to name later ones.
    private final Map<Stream, Boolean> ended = new ConcurrentHashMap<>();

    private record Stream(int device, long handle) {}

    private static final class Block extends AddressTable.Entry {
        final long captureId;
        final int device;
        volatile boolean usedElsewhere;

        /// Whether the program has freed it.
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
        ended.replace(new Stream(device, stream), true);
        long capture = driver.graphs().captureId(device, stream);
        long address;
        try {
            address = driver.pools().allocate(device, byteSize, stream);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw new DeviceOutOfMemoryException(byteSize, device, "the driver has no memory for a graph", failure);
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
        if (mayHaveEnded(device, stream)) {
            block.done = true;
        } else if (graphsAreGone) {
            freeWhatALaunchLeft(block, stream);
        } else if (block.usedElsewhere || !isFreeNode(block, stream)) {
            block.done = true;
        }
    }

    /// Returns whether the stream that a free names may have ended. If a later stream has its handle, that
    /// matters only once the graphs are gone: before, the driver receives only frees on streams of the block's
    /// own capture.
    private boolean mayHaveEnded(int device, long stream) {
        try {
            Boolean isUsedAgain = ended.isEmpty() ? null : ended.get(new Stream(device, stream));
            return isUsedAgain != null && (graphsAreGone || !isUsedAgain);
        } catch (OutOfMemoryError untold) {
            return true;
        }
    }

    @Override
    public void streamClosing(int device, long stream) {
        if (stream > Streams.PER_THREAD_DEFAULT) {
            ended.put(new Stream(device, stream), false);
        }
    }

    /// Makes the free a node, if the stream is in the capture of the allocation and the driver does not refuse.
    /// It holds the lock, so that another allocation of the graph that gets the address at once is added after
    /// the removal.
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

    /// Returns false, so that the framework makes the stream of the free wait: once the graphs are gone, the
    /// driver frees the block after that wait.
    @Override
    public boolean recordUse(long address, int device, long stream) {
        Block block = unfreed.find(address);
        if (block != null) {
            block.usedElsewhere = true;
        }
        return false;
    }

    /// Returns nothing: the driver reports only what all graphs of the process have, and nothing before the first
    /// launch.
    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.empty();
    }

    /// Gives back memory that no graph uses now.
    @Override
    public long trim(int device, long keepBytes) {
        return trim(driver, device, keepBytes);
    }

    /// Gives back memory that the driver keeps for graphs of a device and no graph uses now, even if its
    /// graph is gone.
    static long trim(CudaDriver driver, int device, long keepBytes) {
        long before = driver.graphs().memory(device, GraphMemoryAttribute.RESERVED_CURRENT);
        if (before > keepBytes) {
            driver.graphs().trimMemory(device);
        }
        return Math.max(0, before - driver.graphs().memory(device, GraphMemoryAttribute.RESERVED_CURRENT));
    }

    /// Waits for the device, because streams that the program named in its frees may still be busy. After a
    /// refusal, the next call continues with the remaining blocks.
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

    /// Trims too, because the driver otherwise keeps the memory for the next launch.
    @Override
    public void close() {
        Failures failures = new Failures();
        failures.gather(this::freeDone); // frees that failed before
        // Memory that the driver won't give back serves the next graph, or goes when `async` is trimmed.
        devices.forEach(device -> DeadContext.isDone(() -> driver.graphs().trimMemory(device)));
        failures.rethrow();
    }

    /// Frees a block that a launch left allocated. If the driver refuses that, or the Java heap is full, the block is
    /// freed when this closes.
    private void freeWhatALaunchLeft(Block block, long stream) {
        try {
            if (isAllocated(block)) {
                driver.pools().free(block.device, block.address, stream);
            }
        } catch (CudaException | OutOfMemoryError failure) {
            if (!(failure instanceof CudaException refusal && refusal.result().endsContext())) {
                block.done = true;
                return;
            }
        }
        remove(block);
    }

    /// Whether a launch has allocated a block, and none has freed it since.
    private boolean isAllocated(Block block) {
        try {
            return driver.memory().range(block.device, block.address).byteSize() > 0;
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.NOT_FOUND || failure.result() == CudaResult.INVALID_VALUE) {
                return false;
            }
            throw failure;
        }
    }
}
