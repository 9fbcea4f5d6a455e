package io.cistern.examples.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The kernels for real devices, compiled as C++ and run with one thread where there is none.
final class KernelSourceTests {
    @TempDir
    private Path folder;

    @Test
    void theKernelsFilterSumAndSort() throws Exception {
        Optional<CCompiler> compiler = CCompiler.findForCpp();
        assumeTrue(compiler.isPresent(), "no C++ compiler");
        String program = resource("keyed-sums-on-host.cpp").replace("@KERNELS@", resource("keyed-sums.cu"));
        Path built = compiler.get().program(folder.resolve("kernels"), program);
        Process process = new ProcessBuilder(built.toString()).start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).isZero();
        assertThat(printed.strip())
                .isEqualTo("passed 989, groups 51, compacted 51, first -9223372036854775808 with 20, sum 499439,"
                        + " count 989, sorted 1");
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = Objects.requireNonNull(KernelSourceTests.class.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
