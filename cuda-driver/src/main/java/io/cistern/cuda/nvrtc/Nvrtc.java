package io.cistern.cuda.nvrtc;

import java.util.List;

/// NVIDIA's run-time compiler: CUDA C++ to PTX. It comes with the CUDA toolkit, and with Python packages that use the
/// GPU; not with the driver. It needs no GPU itself.
///
/// The library is looked for under the name in the setting `cistern.nvrtc.library`, if there is one, else as
/// `libnvrtc.so` and with the versions 13 to 11, where the system's loader looks.
///
/// **Threads.** Any; the compiler takes a lock of its own.
public final class Nvrtc {
    private final NvrtcLibrary library;

    private Nvrtc(NvrtcLibrary library) {
        this.library = library;
    }

    /// Finds the compiler.
    ///
    /// @throws UnsupportedOperationException if it is not installed where it was looked for, with the names tried
    public static Nvrtc find() {
        return new Nvrtc(NvrtcLibrary.find());
    }

    /// The library that was found.
    public String libraryName() {
        return library.name();
    }

    /// Its version, for example `13.0`.
    public String version() {
        return library.version();
    }

    /// Compiles a program.
    ///
    /// @param source CUDA C++; a kernel declared `extern "C"` keeps its name
    /// @param name of the source file in messages, for example `filter.cu`
    /// @param options such as `--gpu-architecture=compute_90` or `--use_fast_math`; without an architecture the
    ///     compiler takes its oldest
    /// @return PTX text for [io.cistern.cuda.Modules#load]
    /// @throws NvrtcException if it does not compile, with the compiler's log
    public String compile(String source, String name, List<String> options) {
        return library.compile(source, name, options);
    }
}
