package io.cistern.cuda.nvrtc;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import io.cistern.cuda.library.SharedLibrary;
import io.cistern.cuda.settings.Setting;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;

/// Compiles CUDA C++ to PTX with NVIDIA's run-time compiler. The compiler comes with the CUDA toolkit and with
/// Python packages that use the GPU, but not with the driver. Compiling needs no GPU.
///
/// If the setting `cistern.nvrtc.library` names a library, [#find] loads it. Otherwise the system's loader
/// looks for `libnvrtc.so`, and then for the versions 13 to 11.
///
/// **Threads.** Any; the compiler locks internally.
public final class Nvrtc {
    // A compilation calls `nvrtcCreateProgram` and `nvrtcCompileProgram`; then it asks for the length of the PTX
    // or the log, and for the text. `nvrtcDestroyProgram` follows in any case.
    private final String libraryName;
    private final MethodHandle create;
    private final MethodHandle compile;
    private final MethodHandle destroy;
    private final MethodHandle version;
    private final MethodHandle errorString;
    private final Text ptx;
    private final Text log;

    private Nvrtc(SharedLibrary library) {
        libraryName = library.name();
        create = handle(library, "nvrtcCreateProgram", ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
        compile = handle(library, "nvrtcCompileProgram", JAVA_LONG, JAVA_INT, ADDRESS);
        destroy = handle(library, "nvrtcDestroyProgram", ADDRESS);
        version = handle(library, "nvrtcVersion", ADDRESS, ADDRESS);
        errorString = library.function("nvrtcGetErrorString", FunctionDescriptor.of(ADDRESS, JAVA_INT));
        ptx = new Text(library, "nvrtcGetPTX");
        log = new Text(library, "nvrtcGetProgramLog");
    }

    /// Finds the compiler.
    ///
    /// @throws UnsupportedOperationException if it is not installed; the message lists the names that were
    ///     tried
    public static Nvrtc find() {
        return new Nvrtc(SharedLibrary.find(
                "NVRTC", Setting.NVRTC_LIBRARY, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"));
    }

    private static MethodHandle handle(SharedLibrary library, String function, MemoryLayout... parameters) {
        return library.function(function, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    /// Returns the name or path of the library that was found.
    public String libraryName() {
        return libraryName;
    }

    /// Returns the compiler's version, for example `13.0`.
    public String version() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment major = arena.allocate(JAVA_INT);
            MemorySegment minor = arena.allocate(JAVA_INT);
            check("nvrtcVersion", call(() -> (int) version.invokeExact(major, minor)));
            return major.get(JAVA_INT, 0) + "." + minor.get(JAVA_INT, 0);
        }
    }

    /// Compiles a program.
    ///
    /// @param source CUDA C++; a kernel declared `extern "C"` keeps its name
    /// @param name the name of the source file in messages, for example `filter.cu`
    /// @param options such as `--gpu-architecture=compute_90` or `--use_fast_math`; the default
    ///     architecture depends on the compiler's version
    /// @return PTX text for [io.cistern.cuda.Modules#load]
    /// @throws NvrtcException if the program does not compile, with the compiler's log
    public String compile(String source, String name, List<String> options) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment program = arena.allocate(JAVA_LONG);
            MemorySegment text = arena.allocateFrom(source);
            MemorySegment file = arena.allocateFrom(name);
            check("nvrtcCreateProgram", call(() ->
                    (int) create.invokeExact(program, text, file, 0, MemorySegment.NULL, MemorySegment.NULL)));
            try {
                return compiled(arena, program.get(JAVA_LONG, 0), options);
            } finally {
                int ignored = call(() -> (int) destroy.invokeExact(program));
                assert ignored >= 0;
            }
        }
    }

    private String compiled(Arena arena, long program, List<String> options) {
        MemorySegment list = arena.allocate(ADDRESS, Math.max(1, options.size()));
        for (int i = 0; i < options.size(); i++) {
            list.setAtIndex(ADDRESS, i, arena.allocateFrom(options.get(i)));
        }
        int count = options.size();
        int code = call(() -> (int) compile.invokeExact(program, count, list));
        if (code != 0) {
            throw new NvrtcException("nvrtcCompileProgram", describe(code), code, log.of(arena, program));
        }
        return ptx.of(arena, program);
    }

    private void check(String function, int code) {
        if (code != 0) {
            throw new NvrtcException(function, describe(code), code, "");
        }
    }

    private String describe(int code) {
        try {
            return SharedLibrary.text((MemorySegment) errorString.invokeExact(code));
        } catch (Throwable e) {
            return "nvrtcResult";
        }
    }

    private interface Call {
        int run() throws Throwable;
    }

    private static int call(Call call) {
        try {
            return call.run();
        } catch (Throwable e) {
            throw NativeCode.unexpected(e);
        }
    }

    /// Reads a text of a program: one function returns its length, including the terminating zero, and
    /// another writes it.
    private final class Text {
        private final String function;
        private final MethodHandle size;
        private final MethodHandle get;

        Text(SharedLibrary library, String function) {
            this.function = function;
            size = handle(library, function + "Size", JAVA_LONG, ADDRESS);
            get = handle(library, function, JAVA_LONG, ADDRESS);
        }

        String of(Arena arena, long program) {
            MemorySegment length = arena.allocate(JAVA_LONG);
            check(function + "Size", call(() -> (int) size.invokeExact(program, length)));
            MemorySegment text = arena.allocate(Math.max(1, length.get(JAVA_LONG, 0)));
            check(function, call(() -> (int) get.invokeExact(program, text)));
            return text.getString(0);
        }
    }
}
