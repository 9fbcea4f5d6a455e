package io.cistern.cuda.nvrtc;

import java.util.List;

/// Compiles CUDA C++ to PTX with NVIDIA's run-time compiler. The compiler comes with the CUDA toolkit and with
/// Python packages that use the GPU, but not with the driver. Compiling needs no GPU.
///
/// If the setting `cistern.nvrtc.library` names a library, [#find] loads that one. Otherwise the system's
/// loader looks for `libnvrtc.so`, and then for the versions 13 to 11.
///
/// **Threads.** Any; the compiler locks internally.
public final class Nvrtc {
    private final NvrtcLibrary library;

    private Nvrtc(NvrtcLibrary library) {
        this.library = library;
    }

    /// Finds the compiler.
    ///
    /// @throws UnsupportedOperationException if it is not installed; the message lists the names that were
    ///     tried
    public static Nvrtc find() {
        return new Nvrtc(NvrtcLibrary.find());
    }

    /// Returns the name or path of the library that was found.
    public String libraryName() {
        return library.name();
    }

    /// Returns the compiler's version, for example `13.0`.
    public String version() {
        return library.version();
    }

    /// Compiles a program.
    ///
    /// @param source CUDA C++; a kernel declared `extern "C"` keeps its name
    /// @param name the name of the source file in messages, for example `filter.cu`
    /// @param options such as `--gpu-architecture=compute_90` or `--use_fast_math`; without an architecture the
    ///     compiler uses its oldest one
    /// @return PTX text for [io.cistern.cuda.Modules#load]
    /// @throws NvrtcException if the program does not compile, with the compiler's log
    public String compile(String source, String name, List<String> options) {
        return library.compile(source, name, options);
    }
}
