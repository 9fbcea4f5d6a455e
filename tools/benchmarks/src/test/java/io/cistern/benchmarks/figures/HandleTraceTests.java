package io.cistern.benchmarks.figures;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `handle_trace.c` in front of a library that does nothing.
final class HandleTraceTests {
    private static final String CUBLAS = """
            #include <stdlib.h>
            int cublasCreate_v2(void** handle) { *handle = malloc(8); return 0; }
            int cublasDestroy_v2(void* handle) { free(handle); return 0; }
            int cublasSetStream_v2(void* handle, void* stream) { return 0; }
            int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) { return 0; }
            """;

    private static final String PROGRAM = """
            #include <pthread.h>
            #include <stddef.h>
            #include <unistd.h>
            int cublasCreate_v2(void** handle);
            int cublasSetStream_v2(void* handle, void* stream);
            int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes);
            static void* handle;
            static void* first(void* unused) {
              cublasCreate_v2(&handle);
              cublasSetStream_v2(handle, NULL);
              return NULL;
            }
            static void* second(void* unused) {
              cublasSetStream_v2(handle, NULL);
              cublasSetWorkspace_v2(handle, NULL, 0);
              cublasSetStream_v2(handle, NULL);
              pthread_exit(NULL);
            }
            int main(void) {
              pthread_t thread;
              pthread_create(&thread, NULL, first, NULL);
              pthread_join(thread, NULL);
              pthread_create(&thread, NULL, second, NULL);
              pthread_join(thread, NULL);
              _exit(0);
            }
            """;

    @TempDir
    private Path folder;

    private List<Row> rows;

    @BeforeEach
    void trace() throws IOException, InterruptedException {
        Optional<CCompiler> found = CCompiler.find();
        assumeTrue(found.isPresent(), "no C compiler");
        CCompiler compiler = found.get();
        Path cublas = compiler.library(folder.resolve("libcublas.so.13"), CUBLAS, "-Wl,-soname,libcublas.so.13");
        Path trace =
                compiler.library(folder.resolve("libhandle_trace.so"), Files.readString(source()), "-ldl", "-lpthread");
        Path program = compiler.program(
                folder.resolve("program"), PROGRAM, cublas.toString(), "-Wl,-rpath," + folder, "-lpthread");
        ProcessBuilder process = new ProcessBuilder(program.toString()).inheritIO();
        process.environment().put("LD_PRELOAD", trace.toString());
        process.environment().put("HANDLE_TRACE", folder.resolve("trace").toString());
        assertThat(process.start().waitFor()).isZero();
        try (Stream<Path> files = Files.list(folder)) {
            Path written = files.filter(file -> file.getFileName().toString().startsWith("trace."))
                    .findFirst()
                    .orElseThrow();
            rows = Row.json(Files.readAllLines(written));
        }
    }

    private static Path source() {
        Path at = Path.of("").toAbsolutePath();
        while (!Files.exists(at.resolve("bin/find-jdk"))) {
            at = at.getParent();
        }
        return at.resolve("tools/benchmarks/peers/handle_trace.c");
    }

    private List<Row> rows(String what) {
        return rows.stream().filter(row -> row.text("what").equals(what)).toList();
    }

    @Test
    void aHandleAndItsUsersAreSeen() {
        assertThat(rows("create")).singleElement().satisfies(create -> {
            assertThat(create.text("thread")).isEqualTo("1");
            assertThat(create.number("nanos")).isPositive();
        });
        String handle = rows("create").getFirst().text("handle");
        assertThat(rows("use")).allMatch(use -> use.text("handle").equals(handle));
        assertThat(rows("use"))
                .extracting(use -> use.text("thread"), use -> use.text("streams"), use -> use.text("workspaces"))
                .containsExactlyInAnyOrder(tuple("1", "1", "0"), tuple("2", "2", "1"));
    }

    @Test
    void threadsBeginAndEnd() {
        assertThat(rows("thread"))
                .extracting(thread -> thread.text("thread") + " " + thread.text("ended"))
                .containsExactlyInAnyOrder("0 false", "1 true", "2 true");
        assertThat(rows("thread")).allMatch(thread -> thread.number("end") > thread.number("begin"));
    }
}
