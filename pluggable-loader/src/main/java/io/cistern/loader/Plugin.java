package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import java.nio.file.Path;

/// One plug-in of a plug-in directory, loaded.
///
/// @param place the JAR, or the folder of its JARs
/// @param digest of its contents
/// @param loader of its classes
record Plugin(Path place, Digest digest, PluginClassLoader loader) {
    /// What is said of it if it brings neither an allocator nor a segment source.
    String offersNothing() {
        String file = PluginClassLoader.servicesFile(AllocatorProvider.class);
        return "offers neither an allocator nor a segment source: "
                + (loader.has(file) ? "its " + file + " names no class" : "it has no " + file)
                + "; a JAR that a plug-in needs goes into one folder with it";
    }

    /// Whether another one is the same version of the same.
    boolean sameAs(Path otherPlace, Digest otherDigest) {
        return place.equals(otherPlace) && digest.hex().equals(otherDigest.hex());
    }
}
