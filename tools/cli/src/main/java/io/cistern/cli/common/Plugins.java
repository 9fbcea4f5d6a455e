package io.cistern.cli.common;

import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.internal.names.SettingProblems;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.CatalogProvider;
import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.ServiceLoader;
import java.util.zip.ZipFile;

/// The allocators and segment sources on the class path, on the module path, and in the plug-in directory.
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
        String classPath = System.getProperty("java.class.path", "");
        checkJars(classPath);
        if (!classPath.isEmpty() || mayBringNativeCode(Settings.ofProcess())) {
            ResultStream.keepNativeCodeOut();
        }
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .orElseThrow(() -> new UsageException("cistern-pluggable-loader is missing on the module path"))
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

    /// Looks whether all files of a class path are JARs.
    static void checkJars(String classPath) {
        for (String entry : classPath.split(File.pathSeparator, -1)) {
            File file = new File(entry);
            if (file.isFile()) {
                checkJar(file);
            }
        }
    }

    private static void checkJar(File file) {
        try {
            new ZipFile(file).close();
        } catch (IOException e) {
            throw new UsageException("--class-path: " + file + " is not a JAR or can't be read: " + e.getMessage());
        }
    }
}
