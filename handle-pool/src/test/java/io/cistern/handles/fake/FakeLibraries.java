package io.cistern.handles.fake;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/// A library compiled from `fake_cublas.c` that is cuBLAS, cuBLASLt and cuDNN at once, and what it noticed. Where
/// there is no compiler, the test is skipped.
@SuppressWarnings("restricted")
public final class FakeLibraries {
    private static final List<String> COUNTERS = List.of(
            "violations",
            "created",
            "destroyed",
            "products",
            "heuristics",
            "failing_creates",
            "failing_status",
            "no_algorithm",
            "expected_bytes");

    private final Path path;
    private final SymbolLookup symbols;

    /// Compiles it.
    ///
    /// @param name of its file
    public FakeLibraries(Path folder, String name) {
        path = folder.resolve(name);
        Optional<CCompiler> compiler = CCompiler.find();
        assumeTrue(compiler.isPresent(), "no C compiler on the PATH");
        try (InputStream source = FakeLibraries.class.getResourceAsStream("/fake_cublas.c")) {
            byte[] text = Objects.requireNonNull(source).readAllBytes();
            compiler.get().library(path, new String(text, StandardCharsets.UTF_8));
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
        symbols = SymbolLookup.libraryLookup(path, Arena.global());
    }

    /// Its file.
    public String path() {
        return path.toString();
    }

    /// A counter of the C source, without `fake_`.
    public long count(String counter) {
        return memory(counter, Long.BYTES).get(ValueLayout.JAVA_LONG, 0);
    }

    /// Sets a counter, or what is to happen.
    public void set(String counter, long value) {
        memory(counter, Long.BYTES).set(ValueLayout.JAVA_LONG, 0, value);
    }

    /// Sets all counters to 0.
    public void reset() {
        COUNTERS.forEach(counter -> set(counter, 0));
    }

    /// What the last product was given.
    public String last() {
        return memory("last", 1024).getString(0);
    }

    /// What was forbidden, last; empty for nothing.
    public String violation() {
        return count("violations") == 0 ? "" : memory("violation", 256).getString(0);
    }

    /// The stream that is set in a handle.
    public long stream(long handle) {
        FunctionDescriptor shape = FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
        try {
            return (long) Linker.nativeLinker()
                    .downcallHandle(symbols.findOrThrow("fake_stream"), shape)
                    .invokeExact(handle);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private MemorySegment memory(String counter, long byteSize) {
        return symbols.findOrThrow("fake_" + counter).reinterpret(byteSize);
    }
}
