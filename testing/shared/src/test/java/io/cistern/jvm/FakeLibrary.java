package io.cistern.jvm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// A library that is made for tests and loaded for good, so that native libraries of other libraries find it in place
/// of the real one. It has to come before they do.
@SuppressWarnings("restricted")
public final class FakeLibrary {
    private final SymbolLookup symbols;

    private FakeLibrary(CCompiler compiler, String name, String source) {
        try {
            Path folder = Files.createTempDirectory("fake-library");
            Path library =
                    compiler.library(folder.resolve(name), source, "-Wl,-soname," + name, "-Wl,--default-symver");
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

    /// Makes a library of a C source and loads it.
    ///
    /// @return empty if there is no compiler to make it
    public static Optional<FakeLibrary> load(String name, String source) {
        return CCompiler.find().map(compiler -> new FakeLibrary(compiler, name, source));
    }

    /// A variable of the C source, without `fake_`.
    public long get(String variable) {
        return symbols.findOrThrow("fake_" + variable).reinterpret(Long.BYTES).get(ValueLayout.JAVA_LONG, 0);
    }

    /// Sets a variable of the C source.
    public void set(String variable, long value) {
        symbols.findOrThrow("fake_" + variable).reinterpret(Long.BYTES).set(ValueLayout.JAVA_LONG, 0, value);
    }
}
