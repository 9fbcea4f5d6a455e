package io.cistern.nccl;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// A `libnccl.so.2` compiled from `fake_nccl.c`, whose memory is the host's and whose ranks are of this process,
/// and the functions by which a test looks into it. Where there is no compiler, the test is skipped.
@SuppressWarnings("restricted")
final class FakeNccl {
    private final Path path;
    private final SymbolLookup symbols;

    /// Compiles it.
    ///
    /// @param options of the compiler, such as `-DVERSION=21903`
    FakeNccl(Path folder, String... options) {
        path = folder.resolve("libnccl.so.2");
        compile(options);
        symbols = SymbolLookup.libraryLookup(path, Arena.global());
    }

    private void compile(String... options) {
        boolean hasCompiler = Stream.of(System.getenv("PATH").split(":", -1))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, "gcc")));
        assumeTrue(hasCompiler, "no gcc on the PATH");
        List<String> command = new ArrayList<>(List.of("gcc", "-shared", "-fPIC", "-O1", "-o", path.toString()));
        command.addAll(List.of(options));
        try {
            command.addAll(List.of(
                    Path.of(FakeNccl.class.getResource("/fake_nccl.c").toURI()).toString(), "-lpthread"));
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new AssertionError(command + ":\n" + output);
            }
        } catch (IOException | InterruptedException | URISyntaxException e) {
            throw new AssertionError(e);
        }
    }

    Path path() {
        return path;
    }

    NcclLibrary library() {
        NcclLibrary.LoadResult found = NcclLibrary.find(path.toString());
        return found.library().orElseThrow(() -> new AssertionError(found.reason()));
    }

    /// The calls since the last look, each as `name(arguments)`, ranks instead of communicators, without
    /// pointers.
    List<String> calls() {
        try {
            MemorySegment text = (MemorySegment) handle("fake_text", FunctionDescriptor.of(ValueLayout.ADDRESS))
                    .invokeExact();
            List<String> calls = text.reinterpret(1 << 20).getString(0).lines().toList();
            handle("fake_clear", FunctionDescriptor.ofVoid()).invokeExact();
            return calls;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// Lets a function fail from now on, or none if the code is 0.
    void fail(String name, int code) {
        failAfter(0, name, code);
    }

    /// Lets a function fail after it worked so often.
    void failAfter(int calls, String name, int code) {
        try (Arena arena = Arena.ofConfined()) {
            handle(
                            "fake_fail",
                            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT))
                    .invokeExact(arena.allocateFrom(name), code, calls);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// What `ncclGetLastError` says.
    void lastError(String text) {
        try (Arena arena = Arena.ofConfined()) {
            handle("fake_last_error", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS))
                    .invokeExact(arena.allocateFrom(text));
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// Lets a communicator report an error.
    void asyncError(Communicator rank, int code) {
        try {
            handle("fake_async_error", FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT))
                    .invokeExact(rank.handle().value(), code);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /// How many pieces of memory were allocated and not freed.
    long allocations() {
        try {
            return (long) handle("fake_allocations", FunctionDescriptor.of(ValueLayout.JAVA_LONG))
                    .invokeExact();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private MethodHandle handle(String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor);
    }
}
