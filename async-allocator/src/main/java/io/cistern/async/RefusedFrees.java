package io.cistern.async;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.MemoryPools;
import io.cistern.cuda.Streams;
import java.util.ArrayList;
import java.util.List;

/// Frees that the driver refused, to be tried again when all work of the device has finished; then any stream will do.
final class RefusedFrees {
    private record Refused(int device, long address) {}

    private final MemoryPools pools;
    private final List<Refused> frees = new ArrayList<>();

    RefusedFrees(MemoryPools pools) {
        this.pools = pools;
    }

    synchronized void add(int device, long address) {
        frees.add(new Refused(device, address));
    }

    /// Call after synchronising the device.
    synchronized void freeAgain(int device) {
        frees.removeIf(refused -> refused.device == device && freed(refused));
    }

    private boolean freed(Refused refused) {
        try {
            pools.free(refused.device, refused.address, Streams.LEGACY_DEFAULT);
            return true;
        } catch (CudaException again) {
            return false;
        }
    }
}
