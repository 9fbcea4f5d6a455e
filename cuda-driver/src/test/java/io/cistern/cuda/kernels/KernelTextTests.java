package io.cistern.cuda.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The PTX text assembles for every generation of GPUs from Turing to Blackwell.
final class KernelTextTests {
    @ParameterizedTest
    @ValueSource(strings = {"sm_75", "sm_80", "sm_90", "sm_100"})
    void assembles(String architecture, @TempDir Path folder) throws IOException, InterruptedException {
        assumeTrue(
                Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
                        .anyMatch(path -> Files.isExecutable(Path.of(path, "ptxas"))),
                "no ptxas on the PATH");
        Path text = folder.resolve("kernels.ptx");
        try (InputStream resource = MemoryKernels.class.getResourceAsStream("kernels.ptx")) {
            Files.write(text, resource.readAllBytes());
        }
        Process assembler = new ProcessBuilder(
                        "ptxas",
                        "-arch=" + architecture,
                        "-o",
                        folder.resolve("cubin").toString(),
                        text.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(assembler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(assembler.waitFor(1, TimeUnit.MINUTES)).isTrue();
        assertThat(assembler.exitValue()).as(output).isZero();
        assertThat(Files.readString(text)).contains(".entry cistern_latch(");
    }
}
