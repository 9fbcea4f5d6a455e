package io.cistern.loader.library;

import io.cistern.jvm.CCompiler;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/// Shared libraries of third parties, compiled for a test, which is skipped where there is no C compiler.
public final class CSources {
    /// Host memory, aligned as device memory is; prints as careless libraries do.
    static final String PLAIN = """
            #include <stdio.h>
            #include <stdlib.h>
            #include <sys/types.h>
            void* my_malloc(ssize_t size, int device, void* stream) {
                void* p;
                printf("malloc %zd\\n", size);
                return size >= 1l << 40 || posix_memalign(&p, 256, size) ? 0 : p;
            }
            void my_free(void* p, ssize_t size, int device, void* stream) {
                printf("free %zd\\n", size);
                free(p);
            }
            """;

    /// Passes every call on to two other functions, and so to whatever allocator these belong to.
    public static final String RELAY = """
            #include <sys/types.h>
            typedef void* (*malloc_t)(ssize_t, int, void*);
            typedef void (*free_t)(void*, ssize_t, int, void*);
            static malloc_t to_malloc;
            static free_t to_free;
            void relay(malloc_t m, free_t f) { to_malloc = m; to_free = f; }
            void* my_malloc(ssize_t size, int device, void* stream) { return to_malloc(size, device, stream); }
            void my_free(void* p, ssize_t size, int device, void* stream) { to_free(p, size, device, stream); }
            """;

    private CSources() {}

    /// The compiler, or the end of the test.
    public static CCompiler compiler() {
        var compiler = CCompiler.find();
        Assumptions.assumeTrue(compiler.isPresent(), "no C compiler on the path");
        return compiler.orElseThrow();
    }

    /// Compiles one.
    public static Path library(Path file, String source, String... options) {
        try {
            return compiler().library(file, source, options);
        } catch (java.io.IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
