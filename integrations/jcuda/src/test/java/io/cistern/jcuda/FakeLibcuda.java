package io.cistern.jcuda;

import io.cistern.jvm.FakeLibrary;
import java.util.Optional;

/// A `libcuda.so.1` with the few functions that tests reach: enough for JCuda's native part of the driver API
/// to load without a GPU. It has to come before the first use of [jcuda.driver.JCudaDriver], which tries to
/// load its native part once.
final class FakeLibcuda {
    private static final String SOURCE = """
        long fake_made, fake_freed, fake_stream, fake_failing, fake_contexts;
        static int allocated(unsigned long long* out) {
            if (fake_failing > 0) { fake_failing--; return 2; }
            *out = 0x7f0000000000ULL + 4096 * ++fake_made;
            return 0;
        }
        static int freed(void* stream) {
            if (fake_failing > 0) { fake_failing--; return 700; }
            fake_freed++;
            fake_stream = (long) stream;
            return 0;
        }
        int cuMemAllocManaged(unsigned long long* out, unsigned long bytes, unsigned flags) { return allocated(out); }
        int cuMemAllocFromPoolAsync(unsigned long long* out, unsigned long bytes, void* pool, void* stream) {
            return allocated(out);
        }
        int cuMemFree_v2(unsigned long long at) { return freed((void*) -1); }
        int cuMemFreeAsync(unsigned long long at, void* stream) { return freed(stream); }
        int cuCtxDestroy_v2(void* context) { fake_contexts++; return 0; }
        long fake_called;
        long fake_argument;
        int cuLaunchKernel(void* f, int a, int b, int c, int d, int e, int g, int h, void* stream, long** arguments) {
            fake_called = (long) &cuLaunchKernel;
            fake_argument = arguments[0][0];
            return 0;
        }
        #define F(name) int name() { fake_called = (long) &name; return 0; }
        F(cuMemcpyHtoDAsync_v2) F(cuMemcpyHtoD_v2) F(cuMemcpyDtoHAsync_v2) F(cuMemcpyDtoH_v2)
        F(cuMemcpyDtoDAsync_v2) F(cuMemcpyDtoD_v2) F(cuMemcpyAsync) F(cuMemcpy) F(cuMemsetD8Async)
        F(cuMemsetD8_v2) F(cuMemsetD16Async) F(cuMemsetD16_v2) F(cuMemsetD32Async) F(cuMemsetD32_v2)
        F(cuMemsetD2D8Async) F(cuMemsetD2D8_v2) F(cuMemsetD2D16Async) F(cuMemsetD2D16_v2)
        F(cuMemsetD2D32Async) F(cuMemsetD2D32_v2) F(cuLaunchCooperativeKernel)
        F(cuEventRecord) F(cuStreamWaitEvent) F(cuEventSynchronize) F(cuEventQuery) F(cuEventDestroy_v2)
        F(cuStreamSynchronize) F(cuStreamQuery) F(cuStreamDestroy_v2) F(cuCtxSynchronize)
        """;

    private static final Optional<FakeLibrary> LOADED = FakeLibrary.load("libcuda.so.1", SOURCE);

    private FakeLibcuda() {}

    /// Loads it.
    ///
    /// @return empty if there is no compiler to make it
    static Optional<FakeLibrary> load() {
        return LOADED;
    }
}
