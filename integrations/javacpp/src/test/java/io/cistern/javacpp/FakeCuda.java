package io.cistern.javacpp;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.FakeLibrary;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/// CUDA's libraries with the few functions that tests reach: enough for the presets' native libraries to load without a
/// GPU. They have to come before the first use of the presets' functions.
final class FakeCuda {
    private static final String RUNTIME = """
        #include <stddef.h>
        long fake_made, fake_freed, fake_stream, fake_failing;
        static int allocated(void** out) {
            if (fake_failing > 0) { fake_failing--; return 2; }
            *out = (void*) (0x7f0000000000L + 4096 * ++fake_made);
            return 0;
        }
        static int freed(void* stream) {
            if (fake_failing > 0) { fake_failing--; return 700; }
            fake_freed++;
            fake_stream = (long) stream;
            return 0;
        }
        int cudaMallocManaged(void** out, size_t bytes, unsigned flags) { return allocated(out); }
        int cudaMallocFromPoolAsync(void** out, size_t bytes, void* pool, void* stream) { return allocated(out); }
        int cudaFree(void* at) { return freed((void*) -1); }
        int cudaFreeAsync(void* at, void* stream) { return freed(stream); }
        """;

    /// The functions of a library's handles; `%1$s` begins their names.
    private static final String HANDLES = """
        #include <stdlib.h>
        long fake_created, fake_destroyed, fake_failing, fake_status, fake_stream;
        int %1$sCreate%2$s(void** out) {
            if (fake_failing > 0) { fake_failing--; return (int) fake_status; }
            fake_created++;
            *out = malloc(16);
            return 0;
        }
        int %1$sDestroy%2$s(void* handle) { fake_destroyed++; free(handle); return 0; }
        int %1$sSetStream%2$s(void* handle, void* stream) { fake_stream = (long) stream; return 0; }
        """;

    private static final String PRODUCTS = """
        long fake_workspace, fake_bytes, fake_m, fake_n, fake_k, fake_a, fake_b, fake_c, fake_alpha, fake_beta, fake_ld;
        int cublasSetWorkspace_v2(void* handle, void* at, size_t bytes) {
            fake_workspace = (long) at;
            fake_bytes = (long) bytes;
            return 0;
        }
        int cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a, int lda,
                const float* b, int ldb, const float* beta, float* c, int ldc) {
            fake_m = m; fake_n = n; fake_k = k;
            fake_a = (long) a; fake_b = (long) b; fake_c = (long) c;
            fake_alpha = (long) *alpha; fake_beta = (long) *beta;
            fake_ld = lda * 10000 + ldb * 100 + ldc;
            return ta == 0 && tb == 0 ? 0 : 7;
        }
        """;

    private static final Optional<Map<String, FakeLibrary>> LOADED = load();

    private FakeCuda() {}

    private static Optional<Map<String, FakeLibrary>> load() {
        Map<String, FakeLibrary> loaded = new TreeMap<>();
        Map<String, String> sources = new TreeMap<>(Map.of(
                "libcudart.so.13", RUNTIME,
                "libcublas.so.13", HANDLES.formatted("cublas", "_v2") + PRODUCTS,
                "libcublasLt.so.13", HANDLES.formatted("cublasLt", ""),
                "libcudnn_graph.so.9", HANDLES.formatted("cudnn", ""),
                "libcusparse.so.12", HANDLES.formatted("cusparse", ""),
                "libcusolver.so.12", HANDLES.formatted("cusolverDn", "")));
        for (String empty : List.of(
                "libcuda.so.1", "libcudnn_cnn.so.9", "libcudnn_adv.so.9", "libcudnn_ops.so.9", "libcusolverMg.so.12")) {
            sources.put(empty, "long fake_;");
        }
        sources.forEach((name, source) -> FakeLibrary.load(name, source).ifPresent(made -> loaded.put(name, made)));
        return loaded.isEmpty() ? Optional.empty() : Optional.of(loaded);
    }

    /// Whether there is a compiler to make them. They are loaded before any call returns.
    static boolean isLoaded() {
        return LOADED.isPresent();
    }

    /// Returns one of them; where there is no compiler, the test is skipped.
    static FakeLibrary library(String name) {
        assumeTrue(isLoaded(), "no C compiler on the PATH");
        return LOADED.orElseThrow().get(name);
    }
}
