package io.cistern.jcuda;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// A `libcublas.so.12` with the functions of handles, which JCublas's native part finds already loaded. It has to
/// come before the first use of [jcuda.jcublas.JCublas2], which tries to load its native part once.
@SuppressWarnings("restricted")
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

    private static final Optional<FakeCublas> LOADED = CCompiler.find().map(FakeCublas::new);

    private final SymbolLookup symbols;

    private FakeCublas(CCompiler compiler) {
        try {
            Path folder = Files.createTempDirectory("fake-cublas");
            Path library = compiler.library(folder.resolve("libcublas.so.12"), SOURCE, "-Wl,-soname,libcublas.so.12");
            symbols = SymbolLookup.libraryLookup(library, Arena.global());
            try (var files = Files.list(folder)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(folder);
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /// Loads it.
    ///
    /// @return empty if there is no compiler to make it
    static Optional<FakeCublas> load() {
        return LOADED;
    }

    /// A variable of the C source, without `fake_`.
    long get(String variable) {
        return symbols.findOrThrow("fake_" + variable).reinterpret(Long.BYTES).get(ValueLayout.JAVA_LONG, 0);
    }

    void set(String variable, long value) {
        symbols.findOrThrow("fake_" + variable).reinterpret(Long.BYTES).set(ValueLayout.JAVA_LONG, 0, value);
    }
}
