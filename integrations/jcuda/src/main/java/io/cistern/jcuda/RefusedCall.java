package io.cistern.jcuda;

import io.cistern.cuda.CisternException;
import java.io.Serial;

/// Refuses a call as CUDA would refuse it; becomes the cause of JCuda's exception.
final class RefusedCall extends CisternException {
    @Serial
    private static final long serialVersionUID = 1L;

    private final int code;

    /// @param code the result, which has the same number in both APIs
    RefusedCall(int code, String why) {
        super(why);
        this.code = code;
    }

    int code() {
        return code;
    }
}
