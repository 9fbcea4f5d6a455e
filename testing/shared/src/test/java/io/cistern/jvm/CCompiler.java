package io.cistern.jvm;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/// The C compiler of this machine, for tests with native code of their own.
///
/// @param program its path
public record CCompiler(Path program) {
    /// The first of `cc`, `gcc` and `clang` on the path; a test that needs one is skipped where there is none.
    public static Optional<CCompiler> find() {
        return find("cc", "gcc", "clang");
    }

    /// The same for C++, of `c++`, `g++` and `clang++`.
    public static Optional<CCompiler> findForCpp() {
        return find("c++", "g++", "clang++");
    }

    private static Optional<CCompiler> find(String... names) {
        String[] folders = System.getenv().getOrDefault("PATH", "").split(":", -1);
        return Stream.of(names)
                .flatMap(name -> Stream.of(folders).map(folder -> Path.of(folder, name)))
                .filter(Files::isExecutable)
                .findFirst()
                .map(CCompiler::new);
    }

    /// Makes a shared library.
    ///
    /// @param library where it is put; the source stands beside it
    public Path library(Path library, String source, String... options) throws IOException, InterruptedException {
        return compile(
                library,
                source,
                Stream.concat(Stream.of("-shared", "-fPIC"), Stream.of(options)).toList());
    }

    /// Makes a program.
    ///
    /// @param program where it is put; the source stands beside it
    public Path program(Path program, String source, String... options) throws IOException, InterruptedException {
        return compile(program, source, List.of(options));
    }

    private Path compile(Path made, String source, List<String> options) throws IOException, InterruptedException {
        Path text = Files.writeString(made.resolveSibling(made.getFileName() + ".c"), source);
        List<String> line = new ArrayList<>(List.of(program.toString(), "-O2", "-o", made.toString(), text.toString()));
        line.addAll(options);
        Process compiler = new ProcessBuilder(line).redirectErrorStream(true).start();
        String said = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!compiler.waitFor(1, TimeUnit.MINUTES) || compiler.exitValue() != 0) {
            throw new AssertionError(said + "in\n" + source);
        }
        return made;
    }
}
