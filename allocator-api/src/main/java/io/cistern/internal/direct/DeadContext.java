package io.cistern.internal.direct;

import io.cistern.cuda.CudaException;

/// Tells errors of a context that is beyond use from errors of the call.
final class DeadContext {
    private DeadContext() {}

    static boolean explains(CudaException failure) {
        return switch (failure.result()) {
            case DEINITIALIZED,
                    CONTEXT_IS_DESTROYED,
                    ILLEGAL_ADDRESS,
                    LAUNCH_FAILED,
                    LAUNCH_TIMEOUT,
                    ECC_UNCORRECTABLE -> true;
            default -> false;
        };
    }
}
