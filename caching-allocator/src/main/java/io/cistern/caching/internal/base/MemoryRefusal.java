package io.cistern.caching.internal.base;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.errors.DeviceOutOfMemoryException;

/// Distinguishes failures for lack of memory from others.
public final class MemoryRefusal {
    private MemoryRefusal() {}

    public static boolean isOutOfMemory(RuntimeException failure) {
        return failure instanceof DeviceOutOfMemoryException
                || (failure instanceof CudaException driver && driver.result() == CudaResult.OUT_OF_MEMORY);
    }
}
