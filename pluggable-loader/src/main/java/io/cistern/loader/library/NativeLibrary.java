package io.cistern.loader.library;

import io.cistern.errors.ConfigurationException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// A loaded shared library, which stays loaded. Two requests for the same library get the same one.
///
/// **Threads.** Any.
final class NativeLibrary {
    private final Path file;
    private final long handle;

    private NativeLibrary(Path file, long handle) {
        this.file = file;
        this.handle = handle;
    }

    /// Loads a library.
    ///
    /// @param sha256 the SHA-256 that its contents must have, or null for any
    /// @param before libraries that it needs and does not find by itself, which are loaded first
    /// @param trial whether it is first tried in another process
    /// @throws ConfigurationException if it can't be loaded; names the file
    static NativeLibrary load(Path path, @Nullable String sha256, List<String> before, boolean trial) {
        Path file = path.toAbsolutePath().normalize();
        LibraryLoad load = new LibraryLoad(file, before, trial && before.isEmpty());
        return new NativeLibrary(file, sha256 == null ? load.byPath() : load.byDigest(sha256.toLowerCase(Locale.ROOT)));
    }

    /// Returns the address of a function.
    ///
    /// @param option the option that named it, for the message
    /// @throws ConfigurationException if the library has no such symbol; names both
    long function(String symbol, String option) {
        long address = DynamicLinker.symbol(handle, symbol);
        if (address == 0) {
            throw new ConfigurationException(
                    "library " + file + " has no symbol '" + symbol + "'; name the right one with option " + option);
        }
        return address;
    }

    @Override
    public String toString() {
        return file.toString();
    }
}
