package io.cistern.loader.library;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.options.AllocatorOptions;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/// The functions of a library, found by the symbols that its spec names. `malloc` and `free` are always
/// present. A hook is present if the spec names it.
///
/// | option | function in C | used for |
/// |---|---|---|
/// | `malloc` | `void* f(ssize_t size, int device, cudaStream_t stream)` | every allocation; null: out of memory |
/// | `free` | `void f(void* ptr, ssize_t size, int device, cudaStream_t stream)` | every free |
/// | `init` | `void f(int device_count)` | once in a process, before the first allocation |
/// | `reset` | `void f(void)` | `trim` |
/// | `memory_fraction` | `void f(double fraction, int device)` | option `fraction`, when the library is opened |
/// | `base_alloc` | `void* f(void* ptr, size_t* size)` | the driver's allocation that a block lies in |
/// | `record_stream` | `void f(void* ptr, cudaStream_t stream)` | uses on other streams |
/// | `begin_pool`, `end_pool` | `void f(int device, uint64_t first, uint64_t second)` | around each allocation |
/// | `release_pool` | as these | at the end of this allocator |
///
/// A pool's number is the pair (0, n), where each opened allocator has its own n. PyTorch's own function that
/// begins a pool also takes a C++ function object, which C can't create.
///
/// @param library the library
/// @param malloc the function that allocates
/// @param free the function that frees
/// @param hooks the addresses of the present hooks, by option
/// @param critical whether `malloc` and `free` are called as functions that never wait and never call Java
record LibraryFunctions(
        Path library, MemorySegment malloc, MemorySegment free, Map<String, Long> hooks, boolean critical) {
    /// The symbols of the example in PyTorch's documentation, on which many libraries are based.
    private static final String USUAL_MALLOC = "my_malloc";

    private static final String USUAL_FREE = "my_free";

    static final String INIT = "init";
    static final String RESET = "reset";
    static final String MEMORY_FRACTION = "memory_fraction";
    static final String BASE_ALLOC = "base_alloc";
    static final String RECORD_STREAM = "record_stream";
    static final String BEGIN_POOL = "begin_pool";
    static final String END_POOL = "end_pool";
    static final String RELEASE_POOL = "release_pool";

    private static final List<String> POOL_HOOKS = List.of(BEGIN_POOL, END_POOL, RELEASE_POOL);

    /// The `init` functions that were called, by address. Its monitor is held during the call, so other
    /// threads that open a library wait for it.
    private static final Set<Long> INITIALISED = new HashSet<>();

    /// Loads the library of a spec and finds its functions.
    static LibraryFunctions load(AllocatorOptions options) {
        String malloc = LibraryOptions.MALLOC.read(options).orElse(USUAL_MALLOC);
        String free = LibraryOptions.FREE.read(options).orElse(USUAL_FREE);
        Map<String, String> named = new TreeMap<>();
        LibraryOptions.HOOKS.forEach(hook -> hook.read(options).ifPresent(symbol -> named.put(hook.key(), symbol)));
        List<String> before = LibraryOptions.PRELOAD.read(options).orElse(List.of());
        boolean trial = LibraryOptions.TRIAL.read(options).orElse(true);
        String sha256 = LibraryOptions.SHA256.read(options).orElse(null);
        String path = LibraryOptions.PATH
                .read(options)
                .orElseThrow(
                        () -> new ConfigurationException(
                                "'library' needs the path of a shared library: library:path=/x/alloc.so,malloc=my_malloc,free=my_free"));
        Path library = Path.of(path).toAbsolutePath().normalize();
        long handle = new LibraryLoad(library, before, trial && before.isEmpty()).handle(sha256);
        requireWholePool(library, named.keySet());
        Map<String, Long> hooks = new TreeMap<>();
        named.forEach((hook, symbol) -> hooks.put(hook, function(library, handle, symbol, hook)));
        return new LibraryFunctions(
                library,
                MemorySegment.ofAddress(function(library, handle, malloc, "malloc")),
                MemorySegment.ofAddress(function(library, handle, free, "free")),
                hooks,
                LibraryOptions.CRITICAL.read(options).orElse(false));
    }

    /// @param option the option that named the symbol, for the message
    private static long function(Path library, long handle, String symbol, String option) {
        long address = DynamicLinker.symbol(handle, symbol);
        if (address == 0) {
            throw new ConfigurationException(
                    "library " + library + " has no symbol '" + symbol + "'; name the right one with option " + option);
        }
        return address;
    }

    private static void requireWholePool(Path library, Set<String> named) {
        if (POOL_HOOKS.stream().anyMatch(named::contains) && !named.containsAll(POOL_HOOKS)) {
            throw new ConfigurationException("library " + library + ": pools need all of "
                    + String.join(", ", POOL_HOOKS) + "; this spec names " + named);
        }
    }

    /// Calls `malloc`; returns 0 if the library is out of memory.
    long allocate(long byteSize, int device, long stream) {
        return LibraryCalls.malloc(malloc, critical, byteSize, device, stream);
    }

    void free(long address, long byteSize, int device, long stream) {
        LibraryCalls.free(free, critical, address, byteSize, device, stream);
    }

    boolean has(String hook) {
        return hooks.containsKey(hook);
    }

    long hook(String hook) {
        return hooks.getOrDefault(hook, 0L);
    }

    /// Calls `init`, if the library has one and it was not called yet in this process.
    void initialise(int deviceCount) {
        if (!has(INIT)) {
            return;
        }
        synchronized (INITIALISED) {
            if (INITIALISED.add(hook(INIT))) {
                LibraryCalls.Rare.init(hook(INIT), deviceCount);
            }
        }
    }
}
