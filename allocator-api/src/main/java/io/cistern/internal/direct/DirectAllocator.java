package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.lang.System.Logger.Level;
import java.util.concurrent.ConcurrentLinkedQueue;

/// The driver itself as an allocator: `cuMemAlloc` and `cuMemFree`, nothing kept. The free waits for all running
/// work of the device, so the order between streams takes care of itself.
///
/// How much the driver reserves behind a small allocation is its own affair, so `reservedBytes` is unknown here.
///
/// **Frees must not fail.** What the driver refuses now is tried again with later calls. Two refusals are final: a
/// dead context took its memory with it, and to free an address that the driver does not know would free whatever
/// is put there next.
final class DirectAllocator implements DeviceAllocator {
    private record Owed(long address, long byteSize, int device) {}

    private final CudaDriver driver;
    private final ConcurrentLinkedQueue<Owed> owed = new ConcurrentLinkedQueue<>();

    DirectAllocator(CudaDriver driver) {
        this.driver = driver;
    }

    @Override
    public long allocate(long byteSize, int device, long stream) {
        retry();
        return allocate(driver, byteSize, device);
    }

    /// Calls `cuMemAlloc`.
    static long allocate(CudaDriver driver, long byteSize, int device) {
        try {
            return driver.memory().allocate(device, byteSize);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                throw outOfMemory(driver, byteSize, device, failure);
            }
            throw failure;
        }
    }

    private static DeviceOutOfMemoryException outOfMemory(
            CudaDriver driver, long byteSize, int device, CudaException failure) {
        String detail;
        try {
            var info = driver.memory().info(device);
            detail = "the device has " + info.freeBytes() + " of " + info.totalBytes() + " bytes free";
        } catch (CudaException unknown) {
            detail = "the device does not tell its free bytes: " + unknown.getMessage();
        }
        return new DeviceOutOfMemoryException(byteSize, device, detail, failure);
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        retry();
        try {
            driver.memory().free(device, address);
        } catch (CudaException failure) {
            if (!failure.result().endsContext()) {
                System.getLogger(DirectAllocator.class.getName())
                        .log(Level.WARNING, "{0} bytes stay allocated for now: {1}", byteSize, failure.getMessage());
            }
            if (worthAnotherTry(failure)) {
                owed.add(new Owed(address, byteSize, device));
            }
        }
    }

    /// {@inheritDoc}
    ///
    /// Nothing is idle here but what the driver would not take back before.
    @Override
    public long trim(int device, long keepBytes) {
        return retry();
    }

    @Override
    public void close() {
        retry();
    }

    /// Tries again all that is owed.
    ///
    /// @return bytes freed
    private long retry() {
        if (owed.isEmpty()) {
            return 0;
        }
        long freed = 0;
        for (int left = owed.size(); left > 0; left--) {
            Owed block = owed.poll(); // nobody else tries it meanwhile
            if (block == null) {
                break;
            }
            freed += freedAgain(block) ? block.byteSize : 0;
        }
        return freed;
    }

    private boolean freedAgain(Owed block) {
        try {
            driver.memory().free(block.device, block.address);
            return true;
        } catch (CudaException failure) {
            if (worthAnotherTry(failure)) {
                owed.add(block);
            }
            return false;
        }
    }

    private static boolean worthAnotherTry(CudaException failure) {
        return !failure.result().endsContext() && failure.result() != CudaResult.INVALID_VALUE;
    }
}
