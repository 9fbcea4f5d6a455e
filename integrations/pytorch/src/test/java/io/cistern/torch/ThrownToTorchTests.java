package io.cistern.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.CCompiler;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Where PyTorch is in the process, hooks throw what it catches. It is a fake here, of which the library finds
/// the symbols that PyTorch has: a class of the name `c10::OutOfMemoryError`, the current stream.
final class ThrownToTorchTests {
    private static final Path SOURCES = Path.of("src/test/cpp").toAbsolutePath();

    @TempDir
    private Path folder = Path.of("");

    /// Versions of PyTorch whose `OutOfMemoryError` has a constructor in the library, and older ones.
    @ParameterizedTest
    @ValueSource(strings = {"-DOWN", "-DINLINE"})
    void failuresAreWhatPyTorchCatches(String version) throws Exception {
        assumeTrue(CCompiler.findForCpp().isPresent(), "no C++ compiler on the path");
        assumeTrue(Files.exists(PythonProcess.LIBRARY), "no header of JNI on this machine");

        assertThat(PythonProcess.output(
                        List.of(program(version).toString(), PythonProcess.LIBRARY.toString()), Map.of()))
                .satisfiesExactly(
                        line -> assertThat(line).isEqualTo("allocate: done"),
                        line -> assertThat(line).isEqualTo("1 nothing: done"),
                        line -> assertThat(line)
                                .startsWith("too much: OutOfMemoryError: CUDA out of memory. Cistern: out of memory"),
                        line -> assertThat(line)
                                .startsWith("no such device: exception: Cistern: ")
                                .contains("9"),
                        line -> assertThat(line).startsWith("fraction of no device: exception: Cistern: "),
                        line -> assertThat(line).isEqualTo("begin: done"),
                        line -> assertThat(line).isEqualTo("stream 77"),
                        line -> assertThat(line).isEqualTo("end: done"),
                        line -> assertThat(line).startsWith("end again: exception: Cistern: no capture"),
                        line -> assertThat(line).isEqualTo("release: done"),
                        line -> assertThat(line)
                                .startsWith("no capture: exception: Cistern serves only pools of CUDA graphs"),
                        line -> assertThat(line).startsWith("forked: exception: Cistern: this process was forked"));
    }

    private Path program(String version) throws Exception {
        Path library = folder.resolve("libc10.so");
        compile(library, "fake_c10.cpp", version, "-shared", "-fPIC", "-Wl,-soname,libc10.so");
        Path program = folder.resolve("catches");
        compile(program, "catches.cpp", version, library.toString(), "-Wl,-rpath," + folder, "-ldl");
        return program;
    }

    private static void compile(Path made, String source, String... options) throws Exception {
        List<String> line = new ArrayList<>(List.of(
                CCompiler.findForCpp().orElseThrow().program().toString(),
                "-std=c++17",
                "-O1",
                "-o",
                made.toString(),
                SOURCES.resolve(source).toString()));
        line.addAll(List.of(options));
        PythonProcess.output(line, Map.of());
    }
}
