package io.cistern.loader.library;

import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;

/// The options of `library`, both as an allocator and as a segment source.
final class LibraryOptions {
    static final SpecOption<String> PATH =
            option("path", "a path", "required", "the shared library", AllocatorOptions::text);
    static final SpecOption<String> MALLOC = option(
            "malloc",
            "a symbol",
            "`my_malloc`",
            "allocates: `void* f(ssize_t size, int device, cudaStream_t stream)`",
            AllocatorOptions::text);
    static final SpecOption<String> FREE = option(
            "free",
            "a symbol",
            "`my_free`",
            "frees: `void f(void* address, ssize_t size, int device, cudaStream_t stream)`",
            AllocatorOptions::text);
    static final SpecOption<String> CHECK = option(
            "check",
            "`pointers`, `none`",
            "`pointers`",
            "whether Cistern asks the driver about each returned address; not on a simulated GPU",
            (options, key) -> options.choice(key, List.of("pointers", "none")));
    static final SpecOption<Boolean> CRITICAL = option(
            "critical",
            "`true`, `false`",
            "`false`",
            "promises that neither function waits (as `cudaMalloc` does) or calls Java; calls then cost less",
            AllocatorOptions::flag);
    static final SpecOption<Double> FRACTION = option(
            "fraction",
            "from 0 to 1",
            "no limit",
            "the share of each device that the library may use; needs `memory_fraction`",
            AllocatorOptions::fraction);
    static final SpecOption<List<String>> PRELOAD = option(
            "preload",
            "libraries, by name or path",
            "none",
            "dependencies that the linker does not find",
            AllocatorOptions::list);
    static final SpecOption<Boolean> TRIAL = option(
            "trial",
            "`true`, `false`; not with `preload`",
            "`true`",
            "whether another process first loads the library, in case that crashes",
            AllocatorOptions::flag);
    static final SpecOption<String> SHA256 = option(
            "sha256",
            "64 hexadecimal digits",
            "any file",
            "the file's digest; a private copy of the file is loaded",
            AllocatorOptions::text);

    static final List<SpecOption<String>> HOOKS = List.of(
            hook(
                    LibraryFunctions.INIT,
                    "nothing",
                    "`void f(int device_count)`, called before the process's first allocation"),
            hook(LibraryFunctions.RESET, "`trim` frees nothing", "`void f(void)` gives idle memory back"),
            hook(
                    LibraryFunctions.MEMORY_FRACTION,
                    "no `fraction`",
                    "`void f(double fraction, int device)` sets `fraction`"),
            hook(
                    LibraryFunctions.BASE_ALLOC,
                    "the driver is asked",
                    "`void* f(void* address, size_t* size)` returns start and size of the address's segment"),
            hook(
                    LibraryFunctions.RECORD_STREAM,
                    "the stream of the free waits for other streams",
                    "`void f(void* address, cudaStream_t stream)` records a use on another stream"),
            hook(
                    LibraryFunctions.BEGIN_POOL,
                    "no pools",
                    "`void f(int device, uint64_t, uint64_t)`, called before each allocation; needs `end_pool` and"
                            + " `release_pool`"),
            hook(LibraryFunctions.END_POOL, "no pools", "the same type, called after each allocation"),
            hook(LibraryFunctions.RELEASE_POOL, "no pools", "the same type, called when the allocator closes"));

    private LibraryOptions() {}

    static List<SpecOption<?>> all() {
        List<SpecOption<?>> all =
                new ArrayList<>(List.of(PATH, MALLOC, FREE, CHECK, CRITICAL, FRACTION, PRELOAD, TRIAL, SHA256));
        all.addAll(HOOKS);
        return all;
    }

    private static SpecOption<String> hook(String key, String otherwise, String meaning) {
        return option(key, "a symbol", otherwise, meaning, AllocatorOptions::text);
    }

    private static <T> SpecOption<T> option(
            String key, String legal, String usual, String meaning, SpecOption.Reader<T> reader) {
        return SpecOption.of(LibraryProvider.NAME, key, legal, usual, meaning, reader);
    }
}
