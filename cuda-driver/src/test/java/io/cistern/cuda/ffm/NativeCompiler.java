package io.cistern.cuda.ffm;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// The machine's C and C++ compilers. What needs one that is absent is skipped, with that as the reason.
final class NativeCompiler {
    private static final Pattern INCLUDE = Pattern.compile("-I([^\" ]+)");

    private NativeCompiler() {}

    /// Compiles C code to a shared library.
    static Path sharedLibrary(Path folder, Path source, String... options) {
        assumeTrue(onPath("gcc").isPresent(), "no gcc on the PATH");
        Path library = folder.resolve("libcuda-fake.so");
        List<String> command = new ArrayList<>(List.of("gcc", "-shared", "-fPIC", "-O1", "-o", library.toString()));
        command.addAll(List.of(options));
        command.addAll(List.of(source.toString(), "-lpthread"));
        output(command);
        return library;
    }

    /// Compiles a C++ program that includes `cuda.h`, runs it, and gives its output.
    static String outputOfProgramWithCudaHeader(Path folder, String program) throws IOException {
        assumeTrue(onPath("g++").isPresent(), "no g++ on the PATH");
        Optional<Path> include = cudaInclude();
        assumeTrue(include.isPresent(), "no nvcc on the PATH, so no cuda.h");
        Path source = Files.writeString(folder.resolve("program.cpp"), program);
        Path binary = folder.resolve("program");
        output(List.of("g++", "-std=c++17", "-I" + include.orElseThrow(), "-o", binary.toString(), source.toString()));
        return output(List.of(binary.toString()));
    }

    /// The folder of `cuda.h`, as `nvcc` would pass it on.
    private static Optional<Path> cudaInclude() {
        if (onPath("nvcc").isEmpty()) {
            return Optional.empty();
        }
        String plan = output(List.of("nvcc", "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"));
        Matcher matcher = INCLUDE.matcher(plan);
        return matcher.results()
                .map(found -> Path.of(found.group(1)))
                .filter(folder -> Files.exists(folder.resolve("cuda.h")))
                .findFirst();
    }

    static Optional<Path> onPath(String program) {
        return Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
                .map(folder -> Path.of(folder, program))
                .filter(Files::isExecutable)
                .findFirst();
    }

    static String output(List<String> command) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int status = process.waitFor();
            if (status != 0) {
                throw new AssertionError(String.join(" ", command) + " ended with " + status + ":\n" + output);
            }
            return output;
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(String.join(" ", command), e);
        }
    }
}
