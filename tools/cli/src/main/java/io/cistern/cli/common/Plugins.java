package io.cistern.cli.common;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.io.File;
import java.io.IOException;
import java.lang.module.FindException;
import java.lang.module.ModuleFinder;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.Stream;
import java.util.zip.ZipFile;

/// Finds the allocators and segment sources on the class path, on the module path, and in
/// the plug-in directory.
///
/// A class path entry is a plug-in if it lies outside the program's own folder.
public final class Plugins {
    /// Every spec of a native allocator contains this word.
    private static final String LIBRARY = "library";
    /// The origin of each entry of the plug-in directory contains its digest.
    private static final String DIGEST = ", sha256 ";

    private Plugins() {}

    /// Discovers all allocators and segment sources.
    ///
    /// @throws UsageException if a setting is unknown or invalid, or an entry of the class path is missing or
    ///     no JAR, which Java would pass over in silence
    public static Catalog catalog() {
        List<String> problems = SettingProblems.of(Settings.ofProcess());
        if (!problems.isEmpty()) {
            throw new UsageException(String.join("\n", problems));
        }
        return catalogWhateverIsSet();
    }

    /// Discovers them without checking the settings; the catalogue reports problems with these.
    ///
    /// @throws UsageException if an entry of the class path is missing or no JAR
    public static Catalog catalogWhateverIsSet() {
        List<Path> added = added(System.getProperty("java.class.path", ""));
        added.forEach(Plugins::checkJar);
        if (!added.isEmpty() || mayBringNativeCode(Settings.ofProcess())) {
            ResultStream.keepNativeCodeOut();
        }
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .orElseThrow(() -> new UsageException("cistern-pluggable-loader is missing"))
                .discover(loader);
    }

    /// Returns whether an allocator or source was found in the plug-in directory, or on the class path outside the
    /// program's own folder.
    public static boolean isPlugin(Catalog.Entry entry) {
        return entry.origin().contains(DIGEST)
                || added(System.getProperty("java.class.path", "")).stream()
                        .anyMatch(path -> entry.origin().equals(path.toString()) && !isCisterns(path));
    }

    /// Cistern's own modules lie in several folders while its sources are built.
    private static boolean isCisterns(Path path) {
        try {
            return ModuleFinder.of(path).findAll().stream()
                    .anyMatch(module -> module.descriptor().name().startsWith("io.cistern."));
        } catch (FindException e) { // A JAR need not be a module.
            return false;
        }
    }

    private static boolean mayBringNativeCode(Settings settings) {
        return settings.all().stream()
                .anyMatch(set -> set.setting() == Setting.PLUGINS || set.text().contains(LIBRARY));
    }

    /// Diverts the output of native code if one of the specs loads any. Called before an allocator is opened.
    static void prepareFor(List<String> specs) {
        if (specs.stream().anyMatch(spec -> spec.contains(LIBRARY))) {
            ResultStream.keepNativeCodeOut();
        }
    }

    private static List<Path> added(String classPath) {
        Optional<Path> own = Optional.ofNullable(
                        Plugins.class.getProtectionDomain().getCodeSource())
                .map(source ->
                        Path.of(URI.create(source.getLocation().toString())).getParent());
        return Stream.of(classPath.split(File.pathSeparator, -1))
                .filter(entry -> !entry.isEmpty())
                .map(entry -> Path.of(entry).toAbsolutePath().normalize())
                .filter(entry -> !Optional.ofNullable(entry.getParent()).equals(own))
                .toList();
    }

    /// Rejects a file that is missing or no JAR, because Java would ignore it.
    static void checkJar(Path file) {
        if (Files.notExists(file)) {
            throw new UsageException("--class-path: no such file: " + file);
        }
        if (Files.isDirectory(file)) {
            return;
        }
        try {
            new ZipFile(file.toFile()).close();
        } catch (IOException e) {
            throw new UsageException("--class-path: " + file + " is not a JAR or can't be read: " + e.getMessage());
        }
    }
}
