package io.cistern.jcuda;

import io.cistern.buffers.internal.AllocationCalls;
import org.jspecify.annotations.Nullable;

/// One of JCuda's two APIs. It decides the device, the least number of bytes, and the form of results.
enum JCudaApi {
    DRIVER(AllocationCalls.Api.DRIVER) {
        @Override
        int give(int code, @Nullable Throwable cause) {
            return JCudaResults.ofDriver(code, cause);
        }
    },
    RUNTIME(AllocationCalls.Api.RUNTIME) {
        @Override
        int give(int code, @Nullable Throwable cause) {
            return JCudaResults.ofRuntime(code, cause);
        }
    };

    final AllocationCalls.Api calls;

    JCudaApi(AllocationCalls.Api calls) {
        this.calls = calls;
    }

    /// Returns a failure, or throws it if the program enabled the exceptions of this API.
    abstract int give(int code, @Nullable Throwable cause);
}
