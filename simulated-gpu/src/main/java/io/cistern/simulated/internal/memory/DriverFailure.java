package io.cistern.simulated.internal.memory;

import io.cistern.cuda.CudaResult;
import java.io.Serial;

/// Carries a result other than success from the model to the facet, which turns it into a
/// [io.cistern.cuda.CudaException] with call and arguments.
public final class DriverFailure extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final CudaResult result;
    private final String why;

    public DriverFailure(CudaResult result) {
        this(result, "");
    }

    /// @param why an explanation that a hardware driver does not give
    public DriverFailure(CudaResult result, String why) {
        super(result.name(), null, false, false);
        this.result = result;
        this.why = why;
    }

    public CudaResult result() {
        return result;
    }

    /// Returns the arguments of the call, with the explanation if there is one.
    public String describe(String arguments) {
        return why.isEmpty() ? arguments : arguments + "; " + why;
    }

    /// Fails with INVALID_VALUE unless the condition holds.
    public static void require(boolean condition) {
        failIf(!condition, CudaResult.INVALID_VALUE);
    }

    /// Fails if the condition holds.
    public static void failIf(boolean condition, CudaResult result) {
        if (condition) {
            throw new DriverFailure(result);
        }
    }
}
