package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import java.io.Serial;

/// A result other than success on its way from the model to the facet, which turns it into a
/// [io.cistern.cuda.CudaException] with call and arguments.
final class DriverFailure extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final CudaResult result;

    DriverFailure(CudaResult result) {
        super(result.name(), null, false, false);
        this.result = result;
    }

    CudaResult result() {
        return result;
    }

    /// Fails with INVALID_VALUE unless the condition holds.
    static void require(boolean condition) {
        if (!condition) {
            throw new DriverFailure(CudaResult.INVALID_VALUE);
        }
    }
}
