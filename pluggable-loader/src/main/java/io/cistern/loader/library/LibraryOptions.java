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
            "whether each address that the library returns is checked with the driver; on a simulated GPU nothing is",
            (options, key) -> options.choice(key, List.of("pointers", "none")));
    static final SpecOption<Boolean> CRITICAL = option(
            "critical",
            "`true`, `false`",
            "`false`",
            "that its two functions never wait (no `cudaMalloc` in them) and never call Java: a cheaper call",
            AllocatorOptions::flag);
    static final SpecOption<Double> FRACTION = option(
            "fraction",
            "from 0 to 1",
            "no limit",
            "how much of each device the library may use; needs the hook `memory_fraction`",
            AllocatorOptions::fraction);
    static final SpecOption<List<String>> PRELOAD = option(
            "preload",
            "libraries, by name or path",
            "none",
            "those that this one needs and does not find by itself",
            AllocatorOptions::list);
    static final SpecOption<Boolean> TRIAL = option(
            "trial",
            "`true`, `false`; not with `preload`",
            "`true`",
            "whether it is first loaded in another process, where it may crash",
            AllocatorOptions::flag);
    static final SpecOption<String> SHA256 = option(
            "sha256",
            "64 hexadecimal digits",
            "any file",
            "the digest that the file must have; exactly those bytes are loaded, from a private copy",
            AllocatorOptions::text);

    /// Optional functions of the library.
    static final List<SpecOption<String>> HOOKS = List.of(
            hook(LibraryFunctions.INIT, "called once with the number of devices"),
            hook(LibraryFunctions.RESET, "gives idle memory back"),
            hook(LibraryFunctions.MEMORY_FRACTION, "sets the share of a device that it may use"),
            hook(LibraryFunctions.BASE_ALLOC, "the beginning and size of the segment of an address"),
            hook(LibraryFunctions.RECORD_STREAM, "a block is used on another stream too"),
            hook(LibraryFunctions.BEGIN_POOL, "a pool of its own begins; with `end_pool` and `release_pool`"),
            hook(LibraryFunctions.END_POOL, "that pool ends"),
            hook(LibraryFunctions.RELEASE_POOL, "that pool is given up"));

    private LibraryOptions() {}

    static List<SpecOption<?>> all() {
        List<SpecOption<?>> all =
                new ArrayList<>(List.of(PATH, MALLOC, FREE, CHECK, CRITICAL, FRACTION, PRELOAD, TRIAL, SHA256));
        all.addAll(HOOKS);
        return all;
    }

    private static SpecOption<String> hook(String key, String meaning) {
        return option(key, "a symbol", "none", "its function for this: " + meaning, AllocatorOptions::text);
    }

    private static <T> SpecOption<T> option(
            String key, String legal, String usual, String meaning, SpecOption.Reader<T> reader) {
        return SpecOption.of(LibraryProvider.NAME, key, legal, usual, meaning, reader);
    }
}
