package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.settings.ByteSizes;
import java.lang.System.Logger.Level;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Frees blocks without failing. A free that the driver refuses is *owed*, and later calls retry it.
///
/// Blocks of a dead context are not owed, since their memory went with the context. Nor are addresses
/// unknown to the driver: a retry could free a later block there.
///
/// The arrays always have spare room, so that a free can be owed without Java heap.
final class OwedFrees {
    /// Exceeds the number of threads that free at the same time.
    private static final int ROOM = 64;

    private final CudaDriver driver;

    // The first `count` are in use, in any order. Guarded by this.
    private long[] addresses = new long[2 * ROOM];
    private long[] byteSizes = new long[2 * ROOM];
    private int[] devices = new int[2 * ROOM];

    /// Written under the lock; read without it on every call.
    private volatile int count;

    OwedFrees(CudaDriver driver) {
        this.driver = driver;
    }

    /// Frees a block, now or later.
    void free(long address, long byteSize, int device) {
        try {
            driver.memory().free(device, address);
        } catch (CudaException failure) {
            if (worthAnotherTry(failure)) {
                owe(address, byteSize, device);
            }
            tell(byteSize, failure);
        } catch (OutOfMemoryError ofTheHeap) {
            owe(address, byteSize, device);
        }
    }

    private static void tell(long byteSize, CudaException failure) {
        if (failure.result().endsContext()) {
            return;
        }
        System.getLogger(OwedFrees.class.getName())
                .log(Level.WARNING, ByteSizes.count(byteSize) + " stay allocated for now: " + failure.getMessage());
    }

    private synchronized void owe(long address, long byteSize, int device) {
        if (count == addresses.length) {
            grow();
        }
        addresses[count] = address;
        byteSizes[count] = byteSize;
        devices[count] = device;
        count++;
        if (count + ROOM > addresses.length) {
            grow(); // last: if it fails, this free is owed, and the next ones still have room
        }
    }

    private void grow() {
        long[] moreAddresses = Arrays.copyOf(addresses, 2 * addresses.length);
        long[] moreSizes = Arrays.copyOf(byteSizes, moreAddresses.length);
        devices = Arrays.copyOf(devices, moreAddresses.length);
        byteSizes = moreSizes;
        addresses = moreAddresses;
    }

    /// Retries all owed frees.
    ///
    /// @return bytes freed on a device
    long retry(int device) {
        return count == 0 ? 0 : retryAll(device);
    }

    /// Retries all owed frees, several times if necessary, since no later call will.
    void retryAtLast() {
        for (int tries = DeadContext.MOST_TRIES; tries > 0 && count > 0; tries--) {
            long _ = retryAll(0);
        }
    }

    private synchronized long retryAll(int device) {
        long freed = 0;
        for (int at = count - 1; at >= 0; at--) {
            long byteSize = devices[at] == device ? byteSizes[at] : 0;
            CudaException refusal = freedAgain(at);
            if (refusal == null || !worthAnotherTry(refusal)) {
                remove(at);
            }
            freed += refusal == null ? byteSize : 0;
        }
        return freed;
    }

    private @Nullable CudaException freedAgain(int at) {
        try {
            driver.memory().free(devices[at], addresses[at]);
            return null;
        } catch (CudaException refusal) {
            return refusal;
        }
    }

    private void remove(int at) {
        int last = count - 1;
        addresses[at] = addresses[last];
        byteSizes[at] = byteSizes[last];
        devices[at] = devices[last];
        count = last;
    }

    private static boolean worthAnotherTry(CudaException failure) {
        return !failure.result().endsContext() && failure.result() != CudaResult.INVALID_VALUE;
    }
}
