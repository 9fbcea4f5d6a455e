package io.cistern.loader.library;

import io.cistern.ConfigurationException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// A shared library that was loaded: looked at first, then tried in a process of its own, then loaded for good. Two
/// that ask for the same file get the same library.
///
/// **Threads.** Any.
final class NativeLibrary {
    private static final Map<Path, Long> LOADED = new ConcurrentHashMap<>();

    private final Path file;
    private final long handle;

    private NativeLibrary(Path file, long handle) {
        this.file = file;
        this.handle = handle;
    }

    /// Loads a library.
    ///
    /// @param sha256 what its contents must be, or null
    /// @param before libraries that it needs and does not find by itself, loaded first
    /// @param trial whether it is tried in another process before
    /// @throws ConfigurationException if it can't be loaded; names the file
    static NativeLibrary load(Path path, @Nullable String sha256, List<String> before, boolean trial) {
        Path file = path.toAbsolutePath().normalize();
        synchronized (LOADED) {
            Long loaded = LOADED.get(file);
            if (loaded == null) {
                look(file, sha256);
                before.forEach(each -> open(each, true));
                if (trial && before.isEmpty()) {
                    LoadTrial.problem(file).ifPresent(why -> {
                        throw refused(file, why);
                    });
                }
                loaded = open(file.toString(), false);
                LOADED.put(file, loaded);
            }
            return new NativeLibrary(file, loaded);
        }
    }

    private static void look(Path file, @Nullable String sha256) {
        try {
            Optional<String> problem = ElfHeader.problem(file, System.getProperty("os.arch", ""));
            if (problem.isPresent()) {
                throw refused(file, problem.get());
            }
            if (sha256 != null && !sha256.equals(digest(file))) {
                throw refused(file, "has other contents than when it was found");
            }
        } catch (IOException e) {
            throw refused(file, "can't be read: " + e);
        }
    }

    private static String digest(Path file) throws IOException {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static long open(String name, boolean forOthers) {
        try {
            return DynamicLinker.open(name, forOthers);
        } catch (DynamicLinker.DynamicLinkException e) {
            throw refused(Path.of(name), "can't be loaded: " + e.getMessage());
        }
    }

    private static ConfigurationException refused(Path file, String why) {
        return new ConfigurationException("library " + file + " " + why);
    }

    /// The address of a function.
    ///
    /// @param option which option named it, for the message
    /// @throws ConfigurationException if the library has no such symbol; names both
    long function(String symbol, String option) {
        long address = DynamicLinker.symbol(handle, symbol);
        if (address == 0) {
            throw refused(file, "has no symbol '" + symbol + "'; name the right one with option " + option);
        }
        return address;
    }

    Path file() {
        return file;
    }

    @Override
    public String toString() {
        return file.toString();
    }
}
