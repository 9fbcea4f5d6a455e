package io.cistern.loader.library;

import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.util.ArrayList;
import java.util.List;

/// The options of `library`, both as an allocator and as a segment source.
final class LibraryOptions {
    static final SpecOption<String> PATH =
            option("path", "the path of a shared library", "must be given", "the library", AllocatorOptions::text);
    static final SpecOption<String> MALLOC = option(
            "malloc",
            "a symbol",
            "`my_malloc`",
            "its function that allocates: `void* f(ssize_t size, int device, cudaStream_t stream)`",
            AllocatorOptions::text);
    static final SpecOption<String> FREE = option(
            "free",
            "a symbol",
            "`my_free`",
            "its function that frees: `void f(void* address, ssize_t size, int device, cudaStream_t stream)`",
            AllocatorOptions::text);
    static final SpecOption<String> CHECK = option(
            "check",
            "`pointers`, `none`",
            "`pointers`",
            "whether the driver checks each address that the library returns; not on a simulated GPU",
            (options, key) -> options.choice(key, List.of("pointers", "none")));
    static final SpecOption<Boolean> CRITICAL = option(
            "critical",
            "`true`, `false`",
            "`false`",
            "promises that its two functions never wait (as `cudaMalloc` does) and never call Java: a cheaper call",
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
            "the libraries that this one needs and does not find by itself",
            AllocatorOptions::list);
    static final SpecOption<Boolean> TRIAL = option(
            "trial",
            "`true`, `false`; not with `preload`",
            "`true`",
            "whether it is first loaded in another process, to catch a crash",
            AllocatorOptions::flag);
    static final SpecOption<String> SHA256 = option(
            "sha256",
            "64 hexadecimal digits",
            "any file",
            "the digest of the file; exactly those bytes are loaded, from a private copy",
            AllocatorOptions::text);

    /// Optional functions of the library.
    static final List<SpecOption<String>> HOOKS = List.of(
            hook(LibraryFunctions.INIT, "is called once, with the number of devices"),
            hook(LibraryFunctions.RESET, "gives idle memory back"),
            hook(LibraryFunctions.MEMORY_FRACTION, "sets the share of a device that the library may use"),
            hook(LibraryFunctions.BASE_ALLOC, "returns the start and size of an address's segment"),
            hook(LibraryFunctions.RECORD_STREAM, "records that another stream uses a block"),
            hook(LibraryFunctions.BEGIN_POOL, "begins a pool; with `end_pool` and `release_pool`"),
            hook(LibraryFunctions.END_POOL, "ends the pool"),
            hook(LibraryFunctions.RELEASE_POOL, "releases that pool"));

    private LibraryOptions() {}

    static List<SpecOption<?>> all() {
        List<SpecOption<?>> all =
                new ArrayList<>(List.of(PATH, MALLOC, FREE, CHECK, CRITICAL, FRACTION, PRELOAD, TRIAL, SHA256));
        all.addAll(HOOKS);
        return all;
    }

    private static SpecOption<String> hook(String key, String meaning) {
        return option(key, "a symbol", "none", "a function that " + meaning, AllocatorOptions::text);
    }

    private static <T> SpecOption<T> option(
            String key, String legal, String usual, String meaning, SpecOption.Reader<T> reader) {
        return SpecOption.of(LibraryProvider.NAME, key, legal, usual, meaning, reader);
    }
}
