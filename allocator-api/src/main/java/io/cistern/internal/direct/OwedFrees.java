package io.cistern.internal.direct;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import java.lang.System.Logger.Level;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Frees that must not fail: what the driver refuses now is owed to it, and tried again with later calls.
///
/// Not owed are blocks of a dead context, which took its memory with it, and addresses that the driver does not
/// know: to try those again would be to free whatever is put there next.
final class OwedFrees {
    private record Owed(long address, long byteSize, int device) {}

    private final CudaDriver driver;
    private final ConcurrentLinkedQueue<Owed> owed = new ConcurrentLinkedQueue<>();

    OwedFrees(CudaDriver driver) {
        this.driver = driver;
    }

    /// Frees a block, now or later.
    void free(long address, long byteSize, int device) {
        try {
            driver.memory().free(device, address);
        } catch (CudaException failure) {
            if (!failure.result().endsContext()) {
                System.getLogger(OwedFrees.class.getName())
                        .log(Level.WARNING, "{0} bytes stay allocated for now: {1}", byteSize, failure.getMessage());
            }
            if (worthAnotherTry(failure)) {
                owed.add(new Owed(address, byteSize, device));
            }
        }
    }

    /// Tries again all that is owed.
    ///
    /// @return bytes freed
    long retry() {
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
