package io.cistern.cli;

import io.cistern.spi.Catalog;
import io.cistern.spi.CatalogProvider;
import java.io.File;
import java.io.IOException;
import java.util.ServiceLoader;
import java.util.zip.ZipFile;

/// The allocators and segment sources on the class path and the module path.
final class Plugins {
    private Plugins() {}

    /// Discovers them.
    ///
    /// @throws UsageException if a JAR on the class path is none, which Java would pass over in silence
    static Catalog catalog() {
        checkJars(System.getProperty("java.class.path", ""));
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        return ServiceLoader.load(CatalogProvider.class, loader)
                .findFirst()
                .orElseThrow(() -> new UsageException("pluggable-loader is missing on the module path"))
                .discover(loader);
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
