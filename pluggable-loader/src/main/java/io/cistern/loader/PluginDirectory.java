package io.cistern.loader;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.cuda.settings.WritableByOthers;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Reads a directory of plug-ins:
///
/// | what lies there | is |
/// |---|---|
/// | `acme.jar` | a plug-in |
/// | a folder with JARs | one plug-in of all of them: its own and those that it needs |
/// | `libacme.so`, `acme.so` | a shared library, the allocator `acme` |
/// | all else | nothing |
///
/// Refused, each by itself and with its reason: what everybody may write to, contents that are
/// [not allowed][AllowedDigests], a JAR that is none or only half of one, modules that lack others. Used once, by one
/// thread.
final class PluginDirectory {
    private static final String JAR = ".jar";

    private static final String LIBRARY = ".so";

    /// A shared library that lies in the directory.
    ///
    /// @param name the allocator's
    /// @param file the library
    /// @param digest SHA-256 of its contents
    record Library(String name, Path file, String digest) {}

    /// What lies there and can't be used.
    ///
    /// @param place file or folder
    /// @param problem what is said of it
    record Refused(Path place, String problem) {}

    private final AllowedDigests allowed;
    private final List<Plugin> known;
    private final List<Plugin> plugins = new ArrayList<>();
    private final List<Library> libraries = new ArrayList<>();
    private final List<Refused> refused = new ArrayList<>();

    /// Reads the directory that is set, if one is.
    ///
    /// @param known plug-ins that were loaded before; those that did not change are not loaded again
    PluginDirectory(Settings settings, List<Plugin> known) {
        this.known = known;
        this.allowed =
                settings.get(Setting.PLUGINS_ALLOWED).map(AllowedDigests::read).orElseGet(AllowedDigests::all);
        settings.get(Setting.PLUGINS).ifPresent(this::read);
    }

    List<Plugin> plugins() {
        return plugins;
    }

    List<Library> libraries() {
        return libraries;
    }

    List<Refused> refused() {
        return refused;
    }

    private void read(Settings.Value set) {
        Path directory = Path.of(set.text()).toAbsolutePath().normalize();
        try {
            requireOwn(directory);
            for (Path place : children(directory)) {
                readOne(place);
            }
        } catch (IOException e) {
            refuse(directory, "(" + set.source() + ") can't be read: " + e);
        } catch (Refusal e) {
            refuse(directory, "(" + set.source() + ") " + e.problem);
        }
    }

    /// The allocator's name is what stands between `lib`, if that is there, and `.so`.
    private void readLibrary(Path place) throws IOException, Refusal {
        String file = place.getFileName().toString();
        String name = file.substring(file.startsWith("lib") ? 3 : 0, file.length() - LIBRARY.length());
        if (Names.isLegal(name)) {
            libraries.add(new Library(name, place, AllowedDigests.of(checked(place))));
        }
    }

    private void readOne(Path place) {
        try {
            if (Files.isDirectory(place)) {
                requireOwn(place);
                load(
                        place,
                        children(place).stream().filter(PluginDirectory::isJar).toList());
            } else if (isJar(place)) {
                load(place, List.of(place));
            } else if (place.getFileName().toString().endsWith(LIBRARY)) {
                readLibrary(place);
            }
        } catch (IOException e) {
            refuse(place, "can't be read: " + e);
        } catch (Refusal e) {
            refuse(place, e.problem);
        }
    }

    private void refuse(Path place, String problem) {
        refused.add(new Refused(place, problem));
    }

    private static boolean isJar(Path file) {
        return file.getFileName().toString().endsWith(JAR) && Files.isRegularFile(file);
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

    private void load(Path place, List<Path> jars) throws IOException, Refusal {
        if (jars.isEmpty()) {
            return;
        }
        List<PluginImage> images = new ArrayList<>();
        List<byte[]> contents = new ArrayList<>();
        for (Path jar : jars) {
            byte[] bytes = checked(jar);
            contents.add(bytes);
            images.add(image(jar, bytes));
        }
        Digest digest = new Digest(contents);
        for (Plugin plugin : known) {
            if (plugin.sameAs(place, digest)) {
                plugins.add(plugin);
                return;
            }
        }
        plugins.add(define(place, digest, images));
    }

    private static Plugin define(Path place, Digest digest, List<PluginImage> images) throws Refusal {
        PluginClassLoader loader = new PluginClassLoader(place.getFileName().toString(), images);
        try {
            PluginLayer.define(loader, images);
        } catch (RuntimeException | LinkageError e) { // Of the module system: something is missing or twice there.
            throw new Refusal("can't be a module here: " + e);
        }
        return new Plugin(place, digest, loader);
    }

    private static PluginImage image(Path jar, byte[] bytes) throws Refusal {
        try {
            return PluginImage.of(jar, bytes);
        } catch (IOException e) {
            throw new Refusal((jar.getFileName() + " is no JAR, or only half of one: ") + e.getMessage());
        }
    }

    /// The contents of a file that may be trusted.
    private byte[] checked(Path file) throws IOException, Refusal {
        requireOwn(file);
        byte[] bytes = Files.readAllBytes(file);
        Optional<String> why = allowed.refuses(bytes);
        if (why.isPresent()) {
            throw new Refusal(file.getFileName() + " " + why.get());
        }
        return bytes;
    }

    private static void requireOwn(Path path) throws IOException, Refusal {
        Optional<String> open = WritableByOthers.check(path);
        if (open.isPresent()) {
            throw new Refusal(path.getFileName() + " " + open.get());
        }
    }

    /// Ends the reading of one place.
    private static final class Refusal extends Exception {
        @java.io.Serial
        private static final long serialVersionUID = 1L;

        private final String problem;

        Refusal(String problem) {
            super(problem);
            this.problem = problem;
        }
    }
}
