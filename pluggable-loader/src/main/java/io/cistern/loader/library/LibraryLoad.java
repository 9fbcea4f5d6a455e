package io.cistern.loader.library;

import io.cistern.cuda.settings.RefusedFileException;
import io.cistern.errors.ConfigurationException;
import java.io.IOException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Loads one library for good: looks at it, tries it in a process of its own, then hands it to the dynamic linker.
///
/// | asked for | loaded | the same library is |
/// |---|---|---|
/// | by its SHA-256 | from a [private copy][PrivateCopy] of what was digested | what has the same digest |
/// | by its path | from there | the same path, as long as the same file lies there |
///
/// The dynamic linker gives what it loaded before from a path, whatever lies there now. So a file that changed is
/// loaded beside what it was before if its digest is asked for, and refused if it is not.
///
/// **Threads.** Any. Trials run outside the lock.
///
/// @param file the library
/// @param before libraries that it needs and does not find by itself, loaded first
/// @param isTried whether it is tried in another process before
record LibraryLoad(Path file, List<String> before, boolean isTried) {
    /// By digest, or by path.
    private static final Map<String, Loaded> LOADED = new HashMap<>();

    /// @param handle the dynamic linker's
    /// @param origin the copy that it was loaded from, or the identity of the file
    private record Loaded(long handle, Object origin) {}

    /// Tells a file from another one that takes its path, and from itself after it was written to.
    private record Identity(@Nullable Object fileKey, long byteSize, FileTime modified) {
        static Identity of(Path file) throws IOException {
            BasicFileAttributes attributes = LibraryFile.attributes(file);
            return new Identity(attributes.fileKey(), attributes.size(), attributes.lastModifiedTime());
        }
    }

    /// Loads it from its path.
    ///
    /// @return the dynamic linker's handle
    /// @throws ConfigurationException if it can't be loaded, or has changed since it was; names the file
    long byPath() {
        try {
            Identity identity = Identity.of(file);
            Loaded loaded = loaded(file.toString(), identity, LoadTrial.of(file), file);
            if (!loaded.origin().equals(identity)) {
                throw refused("has changed since it was loaded, and stays loaded as it was; if its sha256 is given,"
                        + " the new one is loaded beside it");
            }
            return loaded.handle();
        } catch (IOException e) {
            throw unreadable(e);
        }
    }

    /// Loads it if it has a digest.
    ///
    /// @param sha256 in lower-case hexadecimal
    /// @return as [#byPath]
    /// @throws ConfigurationException if it can't be loaded, or has another digest; names the file
    long byDigest(String sha256) {
        @Nullable PrivateCopy unused = null;
        try {
            PrivateCopy copy = PrivateCopy.of(file);
            unused = copy;
            if (!copy.sha256().equals(sha256)) {
                throw refused("has the SHA-256 " + copy.sha256() + ", and " + sha256 + " is asked for");
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
        require(ElfHeader.problem(contents, System.getProperty("os.arch", "")));
        require(isTried ? trial.problem() : Optional.empty());
        synchronized (LOADED) {
            Loaded known = LOADED.get(key);
            if (known == null) {
                before.forEach(each -> open(each, each, true));
                known = new Loaded(open(contents.toString(), file.toString(), false), origin);
                LOADED.put(key, known);
            }
            return known;
        }
    }

    /// @param path where the dynamic linker finds it
    /// @param name for people
    private static long open(String path, String name, boolean forOthers) {
        try {
            return DynamicLinker.open(path, forOthers);
        } catch (DynamicLinker.DynamicLinkException e) {
            throw new ConfigurationException("library " + name + " can't be loaded: " + e.getMessage());
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
