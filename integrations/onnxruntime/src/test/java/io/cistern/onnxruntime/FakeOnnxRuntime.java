package io.cistern.onnxruntime;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import io.cistern.jvm.CCompiler;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/// An ONNX Runtime compiled from `fake_onnxruntime.c`, and the calls that its sessions would make. Where there is no
/// compiler, the test is skipped.
final class FakeOnnxRuntime {
    private final SharedLibrary library;

    /// @param options of the compiler, such as `-DNEWEST=22`
    FakeOnnxRuntime(Path folder, String... options) {
        var compiler = CCompiler.find();
        Assumptions.assumeTrue(compiler.isPresent(), "no C compiler on the path");
        try (var source = FakeOnnxRuntime.class.getResourceAsStream("/fake_onnxruntime.c")) {
            String text = new String(source.readAllBytes(), StandardCharsets.UTF_8);
            Path file = compiler.get().library(folder.resolve("libonnxruntime.so"), text, options);
            library = SharedLibrary.load("ONNX Runtime", Setting.ONNXRUNTIME_LIBRARY, file.toString());
        } catch (IOException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    OnnxApi api() {
        return OnnxApi.of(library);
    }

    long allocate(long byteSize) {
        return number("fake_alloc", byteSize);
    }

    long reserve(long byteSize) {
        return number("fake_reserve", byteSize);
    }

    long allocateOnStream(long byteSize, long handle) {
        return number("fake_alloc_on_stream", byteSize, handle);
    }

    void free(long address) {
        number("fake_free", address);
    }

    /// Returns 0 if all is well, 1 if it failed, −1 if the allocator does not have the function.
    int shrink() {
        return (int) number("fake_shrink");
    }

    long statistic(String key) {
        try (Arena arena = Arena.ofConfined()) {
            return number("fake_stat", arena.allocateFrom(key).address());
        }
    }

    int environmentReferences() {
        return (int) number("fake_references");
    }

    int liveStatuses() {
        return (int) number("fake_statuses");
    }

    /// Allocates and frees on native threads, and returns how many allocations failed.
    int serveOnNativeThreads(long[] handles, int rounds) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment list = arena.allocateFrom(JAVA_LONG, handles);
            return (int) library.function("fake_threads", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT))
                    .invokeExact(handles.length, list, rounds);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private long number(String function, long... arguments) {
        MemoryLayout[] layouts = new MemoryLayout[arguments.length];
        java.util.Arrays.fill(layouts, JAVA_LONG);
        Object[] boxed = java.util.Arrays.stream(arguments).boxed().toArray();
        try {
            return (long) library.function(function, FunctionDescriptor.of(JAVA_LONG, layouts))
                    .invokeWithArguments(boxed);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }
}
