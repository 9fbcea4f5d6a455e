package io.cistern.loader.library;

import io.cistern.cuda.settings.RefusedFileException;
import io.cistern.errors.ConfigurationException;
import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Loads one library permanently: checks the file, tries it in another process, then passes it to the
/// dynamic linker.
///
/// | requested | loaded from | the same library if |
/// |---|---|---|
/// | by its SHA-256 | a [private copy][PrivateCopy] of the digested bytes | the digest is the same |
/// | by its path | that path | the path is the same and the same file lies there |
///
/// For a path that it loaded before, the dynamic linker returns the old library, whatever file lies there now.
/// So a changed file is loaded beside the old one if its digest is requested, and refused if not.
///
/// **Threads.** Any. Trials run outside the lock.
///
/// @param file the library
/// @param before libraries that it needs and does not find by itself, which are loaded first
/// @param isTried whether it is first tried in another process
record LibraryLoad(Path file, List<String> before, boolean isTried) {
    private static final Map<String, Loaded> LOADED = new HashMap<>();

    /// @param handle the dynamic linker's handle
    /// @param origin the copy that it was loaded from, or the identity of the file
    private record Loaded(long handle, Object origin) {}

    /// Distinguishes a file from another file that takes its path, and from itself after a write.
    private record Identity(@Nullable Object fileKey, long byteSize, FileTime modified) {
        static Identity of(Path file) throws IOException {
            BasicFileAttributes attributes = LibraryFile.attributes(file);
            return new Identity(attributes.fileKey(), attributes.size(), attributes.lastModifiedTime());
        }
    }

    /// Loads the library and returns its handle.
    long handle(@Nullable String sha256) {
        return sha256 == null ? byPath() : byDigest(sha256.toLowerCase(Locale.ROOT));
    }

    /// Loads the library from its path.
    private long byPath() {
        try {
            Identity identity = Identity.of(file);
            Loaded loaded = loaded(file.toString(), identity, LoadTrial.of(file), file);
            if (!loaded.origin().equals(identity)) {
                throw refused("has changed since it was loaded, and its old version stays loaded; if the spec gives"
                        + " the sha256 of the new one, that is loaded alongside it");
            }
            return loaded.handle();
        } catch (IOException e) {
            throw unreadable(e);
        }
    }

    /// Loads the library if it has the given digest.
    private long byDigest(String sha256) {
        @Nullable PrivateCopy unused = null;
        try {
            PrivateCopy copy = PrivateCopy.of(file);
            unused = copy;
            if (!copy.sha256().equals(sha256)) {
                throw refused("has the SHA-256 " + copy.sha256() + ", but the spec asks for " + sha256);
            }
            Loaded loaded = loaded(sha256, copy, LoadTrial.of(copy), copy.path());
            unused = loaded.origin() == copy ? null : copy;
            return loaded.handle();
        } catch (IOException e) {
            throw unreadable(e);
        } catch (UnsupportedOperationException e) {
            throw refused("can't be loaded by its digest: " + e.getMessage());
        } finally {
            if (unused != null) {
                unused.close();
            }
        }
    }

    private Loaded loaded(String key, Object origin, LoadTrial trial, Path contents) throws IOException {
        synchronized (LOADED) {
            Loaded known = LOADED.get(key);
            if (known != null) {
                return known;
            }
        }
        require(LibraryFile.problem(contents));
        require(isTried ? trial.problem() : Optional.empty());
        synchronized (LOADED) {
            Loaded known = LOADED.get(key);
            if (known == null) {
                before.forEach(each -> DynamicLinker.open(each, each, true));
                known = new Loaded(DynamicLinker.open(contents.toString(), file.toString(), false), origin);
                LOADED.put(key, known);
            }
            return known;
        }
    }

    private void require(Optional<String> problem) {
        if (problem.isPresent()) {
            throw refused(problem.get());
        }
    }

    private ConfigurationException unreadable(IOException e) {
        return refused(e instanceof RefusedFileException ? String.valueOf(e.getMessage()) : "can't be read: " + e);
    }

    private ConfigurationException refused(String why) {
        return new ConfigurationException("library " + file + " " + why);
    }
}
