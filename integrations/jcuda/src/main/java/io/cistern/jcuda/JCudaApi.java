package io.cistern.jcuda;

import io.cistern.DeviceMemory;
import jcuda.driver.CUresult;
import org.jspecify.annotations.Nullable;

/// One of JCuda's two APIs. It decides the device, the least number of bytes, and the form of results.
enum JCudaApi {
    DRIVER {
        @Override
        int deviceWithoutContext() {
            throw new RefusedCall(CUresult.CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
        }

        @Override
        long minBytes() {
            return 1;
        }

        @Override
        int give(int code, @Nullable Throwable cause) {
            return JCudaResults.ofDriver(code, cause);
        }
    },
    RUNTIME {
        @Override
        int deviceWithoutContext() {
            return 0; // the runtime API's first device
        }

        @Override
        long minBytes() {
            return 0;
        }

        @Override
        int give(int code, @Nullable Throwable cause) {
            return JCudaResults.ofRuntime(code, cause);
        }
    };

    private static final int NO_CONTEXT = -1;

    abstract int deviceWithoutContext();

    abstract long minBytes();

    /// Returns a failure, or throws it if the program enabled the exceptions of this API.
    abstract int give(int code, @Nullable Throwable cause);

    /// Returns the device of the context that is current on the calling OS thread.
    int currentDevice(DeviceMemory memory) {
        int device = memory.driver().devices().currentDevice();
        return device == NO_CONTEXT ? deviceWithoutContext() : device;
    }
}
