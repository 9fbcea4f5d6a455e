package io.cistern.loader;

import io.cistern.cuda.settings.RefusedFileException;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.cuda.settings.TrustedFiles;
import io.cistern.internal.names.Names;
import io.cistern.loader.library.LibraryFile;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/// Reads a directory of plug-ins:
///
/// | entry | meaning |
/// |---|---|
/// | `acme.jar` | a plug-in |
/// | a folder with JARs | one plug-in of all of them: its own and those that it needs |
/// | `libacme.so`, `acme.so` | a shared library, the allocator `acme` |
/// | anything else | ignored |
///
/// It refuses single entries, each with its reason: files that [others can change][TrustedFiles], files that
/// are not regular, contents that are [not allowed][AllowedDigests], JARs that are invalid or truncated,
/// and modules whose dependencies are missing. JARs are kept in memory, packed and unpacked. Together they
/// take a bounded share of the Java heap; those that would exceed it are refused. Used once, by one thread.
final class PluginDirectory {
    private static final String JAR = ".jar";

    private static final String LIBRARY = ".so";

    /// The share of the Java heap that JARs may take. During a reload, they are in memory twice.
    private static final int HEAP_SHARE = 8;

    /// A shared library in the directory.
    record Library(String name, Path file, String digest) {}

    /// An entry that can't be used.
    record Refused(Path place, String problem) {}

    private final AllowedDigests allowed;
    private final TrustedFiles trusted = new TrustedFiles();
    private final List<Plugin> known;
    private int heapBytesLeft =
            (int) Math.min(Integer.MAX_VALUE / 2, Runtime.getRuntime().maxMemory() / HEAP_SHARE);
    final List<Plugin> plugins = new ArrayList<>();
    final List<Library> libraries = new ArrayList<>();
    final List<Refused> refused = new ArrayList<>();

    /// Reads the directory that the settings name, if they name one.
    ///
    /// @param known plug-ins that were loaded before; unchanged ones are not loaded again
    PluginDirectory(Settings settings, List<Plugin> known) {
        this.known = known;
        this.allowed =
                settings.get(Setting.PLUGINS_ALLOWED).map(AllowedDigests::read).orElseGet(AllowedDigests::all);
        settings.get(Setting.PLUGINS).ifPresent(this::read);
    }

    private void read(Settings.Value set) {
        Path directory = Path.of(set.text()).toAbsolutePath().normalize();
        String by = "(" + set.source() + ") ";
        try {
            trusted.requireDirectory(directory);
            for (Path place : children(directory)) {
                readOne(place);
            }
        } catch (RefusedFileException e) {
            refuse(directory, by + e.getMessage());
        } catch (NoSuchFileException e) {
            refuse(directory, by + "does not exist; create it, or name the directory that the plug-ins are in");
        } catch (IOException e) {
            refuse(directory, by + "can't be read: " + e);
        }
    }

    private void readOne(Path place) {
        try {
            if (Files.isDirectory(place)) {
                readFolder(place);
            } else if (isJar(place)) {
                load(place, List.of(place));
            } else if (place.getFileName().toString().endsWith(LIBRARY)) {
                readLibrary(place);
            }
        } catch (RefusedFileException e) {
            refuse(place, String.valueOf(e.getMessage()));
        } catch (IOException e) {
            refuse(place, "can't be read: " + e);
        }
    }

    private void readFolder(Path folder) throws IOException {
        trusted.requireDirectory(folder);
        load(folder, children(folder).stream().filter(PluginDirectory::isJar).toList());
    }

    /// Reads a library. The allocator's name is the file's name without a leading `lib` and without `.so`.
    private void readLibrary(Path place) throws IOException {
        String file = place.getFileName().toString();
        String name = file.substring(file.startsWith("lib") ? 3 : 0, file.length() - LIBRARY.length());
        if (!Names.isLegal(name)) {
            return;
        }
        Path library = trusted.requireFile(place);
        String digest = LibraryFile.sha256(library);
        LibraryFile.requireLibrary(library);
        requireAllowed(() -> digest);
        libraries.add(new Library(name, place, digest));
    }

    private void refuse(Path place, String problem) {
        refused.add(new Refused(place, problem));
    }

    private static boolean isJar(Path file) {
        return file.getFileName().toString().endsWith(JAR) && !Files.isDirectory(file);
    }

    private static List<Path> children(Path directory) throws IOException {
        List<Path> children = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
            files.forEach(children::add);
        } catch (DirectoryIteratorException e) {
            throw e.getCause();
        }
        children.sort(null);
        return children;
    }

    private void load(Path place, List<Path> jars) throws IOException {
        if (jars.isEmpty()) {
            return;
        }
        List<PluginImage> images = new ArrayList<>();
        List<byte[]> contents = new ArrayList<>();
        int left = heapBytesLeft;
        for (Path jar : jars) {
            try {
                byte[] bytes = contents(jar, left);
                PluginImage image = image(jar, bytes, left - bytes.length);
                left -= bytes.length + image.byteSize();
                contents.add(bytes);
                images.add(image);
            } catch (RefusedFileException e) {
                throw jar.equals(place) ? e : new RefusedFileException(jar.getFileName() + " " + e.getMessage());
            }
        }
        heapBytesLeft = left;
        Digest digest = new Digest(contents);
        for (Plugin plugin : known) {
            if (plugin.sameAs(place, digest)) {
                plugins.add(plugin);
                return;
            }
        }
        plugins.add(define(place, digest, images));
    }

    private static Plugin define(Path place, Digest digest, List<PluginImage> images) throws RefusedFileException {
        PluginClassLoader loader = new PluginClassLoader(place.getFileName().toString(), images);
        try {
            PluginLayer.define(loader, images);
        } catch (RuntimeException | LinkageError e) { // a module is missing or duplicated
            throw new RefusedFileException("can't be a module here: " + Problem.of(e));
        }
        return new Plugin(place, digest, loader);
    }

    private static PluginImage image(Path jar, byte[] bytes, int maxBytes) throws RefusedFileException {
        try {
            return PluginImage.of(jar, bytes, maxBytes);
        } catch (RefusedFileException e) {
            throw e;
        } catch (IOException e) {
            throw new RefusedFileException("is not a JAR, or is truncated: " + e.getMessage());
        }
    }

    private byte[] contents(Path jar, int maxBytes) throws IOException {
        Path file = trusted.requireFile(jar);
        if (Files.size(file) > maxBytes) {
            throw new RefusedFileException("is " + PluginImage.TOO_LARGE);
        }
        byte[] bytes = TrustedFiles.read(file, maxBytes);
        requireAllowed(() -> AllowedDigests.of(bytes));
        return bytes;
    }

    private void requireAllowed(Supplier<String> digest) throws RefusedFileException {
        Optional<String> why = allowed.refuses(digest);
        if (why.isPresent()) {
            throw new RefusedFileException(why.get());
        }
    }
}
