package io.cistern.async;

import io.cistern.DeviceOutOfMemoryException;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.Streams;
import io.cistern.spi.GraphAllocator;
import io.cistern.spi.RecordsUse;
import java.util.Map;
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
final class GraphAllocations implements GraphAllocator, RecordsUse {
    private final CudaDriver driver;

    /// Blocks without a free node, by address.
    private final Map<Long, Origin> unfreed = new ConcurrentHashMap<>();

    /// Of those, the ones that the program is done with.
    private final Set<Long> done = ConcurrentHashMap.newKeySet();

    private volatile boolean graphsAreGone;

    private final Set<Long> usedElsewhere = ConcurrentHashMap.newKeySet();

    private final Set<Integer> devices = ConcurrentHashMap.newKeySet();

    private record Origin(long captureId, int device) {}

    GraphAllocations(CudaDriver driver) {
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        long capture = driver.graphs().captureId(device, stream);
        try {
            long address = driver.pools().allocate(device, byteSize, stream);
            unfreed.put(address, new Origin(capture, device));
            devices.add(device);
            return address;
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw new DeviceOutOfMemoryException(byteSize, device, "the driver has none for a graph", failure);
            }
            throw failure;
        }
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        boolean ordered = !usedElsewhere.remove(address);
        Origin origin = unfreed.get(address);
        if (origin == null) {
            return;
        }
        if (graphsAreGone) {
            unfreed.remove(address);
            freeWhatALaunchLeft(address, device, stream);
        } else if (!ordered || !isFreeNode(address, origin, stream)) {
            done.add(address);
        }
    }

    /// Makes the free a node, if the stream is in the capture of the allocation and the driver does not refuse.
    private boolean isFreeNode(long address, Origin origin, long stream) {
        try {
            if (driver.graphs().captureId(origin.device(), stream) != origin.captureId()) {
                return false;
            }
            unfreed.remove(address); // first: another allocation of the graph may have the address at once
            driver.pools().free(origin.device(), address, stream);
            return true;
        } catch (CudaException refused) {
            unfreed.put(address, origin);
            return false;
        }
    }

    /// Leaves it to the framework too, which makes the stream of the free wait: once the graphs are gone, the driver is
    /// to free the block behind that.
    @Override
    public boolean recordUse(long address, int device, long stream) {
        usedElsewhere.add(address);
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
        for (long address : Set.copyOf(done)) {
            Origin origin = unfreed.get(address);
            if (origin != null) {
                waitForDevice(origin.device());
                unfreed.remove(address);
                freeWhatALaunchLeft(address, origin.device(), Streams.LEGACY_DEFAULT);
            }
            done.remove(address);
        }
    }

    private void waitForDevice(int device) {
        try {
            driver.devices().synchronize(device);
        } catch (CudaException refused) {
            if (!refused.result().endsContext()) { // else nothing runs any more
                throw refused;
            }
        }
    }

    /// The driver keeps memory for the next graph that is launched until it is asked for it.
    @Override
    public void close() {
        devices.forEach(this::trimUnlessRefused);
    }

    private void trimUnlessRefused(int device) {
        try {
            driver.graphs().trimMemory(device);
        } catch (CudaException refused) {
            // It stays for the next graph, or until async is trimmed.
        }
    }

    private void freeWhatALaunchLeft(long address, int device, long stream) {
        try {
            if (driver.memory().range(device, address).byteSize() > 0) { // fails for what no launch has allocated
                driver.pools().free(device, address, stream);
            }
        } catch (CudaException notAllocated) {
            // The graph was never launched, or its context is dead.
        }
    }
}
