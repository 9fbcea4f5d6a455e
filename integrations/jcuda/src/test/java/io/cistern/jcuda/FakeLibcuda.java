package io.cistern.jcuda;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// A `libcuda.so.1` with the few functions that tests reach: enough for JCuda's native part of the driver API
/// to load without a GPU. It has to come before the first use of [jcuda.driver.JCudaDriver], which tries to
/// load its native part once.
@SuppressWarnings("restricted")
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
        """;

    private static final Optional<FakeLibcuda> LOADED = CCompiler.find().map(FakeLibcuda::new);

    private final SymbolLookup symbols;

    private FakeLibcuda(CCompiler compiler) {
        try {
            Path folder = Files.createTempDirectory("fake-libcuda");
            Path library = compiler.library(folder.resolve("libcuda.so.1"), SOURCE, "-Wl,-soname,libcuda.so.1");
            System.load(library.toString());
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
    static Optional<FakeLibcuda> load() {
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
