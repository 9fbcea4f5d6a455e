package io.cistern.jcuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/// A `libcuda.so.1` with nothing in it: enough for JCuda's native part of the driver API to load without a GPU.
/// It has to come before the first use of [jcuda.driver.JCudaDriver], which tries to load its native part once.
final class EmptyLibcuda {
    private static final boolean LOADED = compileAndLoad();

    private EmptyLibcuda() {}

    /// Loads it.
    ///
    /// @return false if there is no compiler to make it
    static boolean load() {
        return LOADED;
    }

    @SuppressWarnings("restricted")
    private static boolean compileAndLoad() {
        boolean hasCompiler = Stream.of(System.getenv("PATH").split(":", -1))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, "gcc")));
        if (!hasCompiler) {
            return false;
        }
        try {
            Path source = Files.createTempFile("empty", ".c");
            Path library = Files.createTempFile("libcuda", ".so");
            try {
                compile(source, library);
                System.load(library.toString());
            } finally {
                Files.delete(source);
                Files.delete(library);
            }
            return true;
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void compile(Path source, Path library) throws IOException, InterruptedException {
        Files.writeString(source, "int empty;\n");
        Process compiler = new ProcessBuilder(
                        "gcc",
                        "-shared",
                        "-fPIC",
                        "-Wl,-soname,libcuda.so.1",
                        "-o",
                        library.toString(),
                        source.toString())
                .inheritIO()
                .start();
        if (compiler.waitFor() != 0) {
            throw new AssertionError("gcc failed");
        }
    }
}
