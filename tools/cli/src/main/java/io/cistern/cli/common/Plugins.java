package io.cistern.cli.common;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.Stream;
import java.util.zip.ZipFile;

/// The allocators and segment sources on the class path, on the module path, and in the plug-in directory.
///
/// On the class path, a plug-in is what lies elsewhere than the program.
public final class Plugins {
    /// What every spec of native code has in it.
    private static final String LIBRARY = "library";

    private Plugins() {}

    /// Discovers them.
    ///
    /// @throws UsageException if something is set that is no setting, or a JAR on the class path is none, which
    ///     Java would pass over in silence
    public static Catalog catalog() {
        SettingProblems.of(Settings.ofProcess()).stream().findFirst().ifPresent(problem -> {
            throw new UsageException(problem);
        });
        return catalogWhateverIsSet();
    }

    /// Discovers them; what is wrong with the settings is the catalogue's to tell.
    ///
    /// @throws UsageException if a JAR on the class path is none
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

    private static boolean mayBringNativeCode(Settings settings) {
        return settings.all().stream()
                .anyMatch(set -> set.setting() == Setting.PLUGINS || set.text().contains(LIBRARY));
    }

    /// Called before an allocator is opened.
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

    /// Java passes over what is not there, and what is no JAR.
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
