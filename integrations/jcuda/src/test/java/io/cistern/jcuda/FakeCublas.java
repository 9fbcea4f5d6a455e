package io.cistern.jcuda;

import io.cistern.jvm.FakeLibrary;
import java.util.Optional;

/// A `libcublas.so.12` with the functions of handles, which JCublas's native part finds already loaded. It has to
/// come before the first use of [jcuda.jcublas.JCublas2], which tries to load its native part once.
final class FakeCublas {
    private static final String SOURCE = """
        #include <stdlib.h>
        long fake_created, fake_destroyed, fake_failing, fake_stream, fake_workspace, fake_bytes;
        int cublasCreate_v2(void** out) {
            if (fake_failing > 0) { fake_failing--; return 3; }
            fake_created++;
            *out = malloc(16);
            return 0;
        }
        int cublasDestroy_v2(void* handle) { fake_destroyed++; free(handle); return 0; }
        int cublasSetStream_v2(void* handle, void* stream) { fake_stream = (long) stream; return 0; }
        int cublasSetWorkspace_v2(void* handle, void* at, size_t bytes) {
            fake_workspace = (long) at;
            fake_bytes = (long) bytes;
            return 0;
        }
        """;

    private static final Optional<FakeLibrary> LOADED = FakeLibrary.load("libcublas.so.12", SOURCE);

    private FakeCublas() {}

    /// Loads it.
    ///
    /// @return empty if there is no compiler to make it
    static Optional<FakeLibrary> load() {
        return LOADED;
    }
}
