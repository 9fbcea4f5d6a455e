package io.cistern.loader;

import io.cistern.cuda.settings.Settings;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// A plug-in directory with the catalogue that is made of it.
final class PluginFolder {
    final Path path;
    final Map<String, String> properties = new TreeMap<>();
    private ProbeTimeout timeout = ProbeTimeout.USUAL;

    PluginFolder(Path folder) throws IOException {
        path = directory(folder.resolve("plugins"));
        properties.put("cistern.plugins", path.toString());
    }

    /// Makes a directory that its owner alone may write to, whatever the user's umask.
    static Path directory(Path path) throws IOException {
        Files.createDirectories(path);
        return Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /// Lets the owner alone write to a file, whatever the user's umask.
    static Path own(Path file) throws IOException {
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
    }

    /// Waits no longer for those that never answer.
    PluginFolder impatient() {
        timeout = new ProbeTimeout(Duration.ofMillis(200));
        return this;
    }

    /// Drops a plug-in of one allocator.
    Path drop(String file, PluginJar plugin) {
        return plugin.build(path.resolve(file));
    }

    Path drop(String file, String className, String source) {
        return drop(file, PluginJar.allocator(className, source));
    }

    Catalog discover() {
        return new LoaderCatalogProvider(() -> new Settings(properties, Map.of()), timeout)
                .discover(getClass().getClassLoader(), List.of(), List.of());
    }

    static Map<String, String> problems(Catalog catalog) {
        return catalog.entries().stream()
                .filter(entry -> entry.problem().isPresent())
                .collect(Collectors.toMap(
                        Catalog.Entry::name, entry -> entry.problem().orElseThrow()));
    }
}
