package io.cistern.caching.internal.base;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;

/// Tells failures for want of memory from other failures.
public final class MemoryRefusal {
    private MemoryRefusal() {}

    public static boolean isOutOfMemory(RuntimeException failure) {
        return failure instanceof DeviceOutOfMemoryException
                || (failure instanceof CudaException driver && driver.result() == CudaResult.OUT_OF_MEMORY);
    }
}
