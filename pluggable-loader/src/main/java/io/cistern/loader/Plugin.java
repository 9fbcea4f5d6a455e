package io.cistern.loader;

import io.cistern.spi.AllocatorProvider;
import java.nio.file.Path;

/// One loaded plug-in of a plug-in directory.
///
/// @param place the JAR, or the folder of its JARs
/// @param digest the digest of its contents
/// @param loader the loader of its classes
record Plugin(Path place, Digest digest, PluginClassLoader loader) {
    String offersNothing() {
        String file = PluginClassLoader.servicesFile(AllocatorProvider.class);
        return "offers neither an allocator nor a segment source: "
                + (loader.has(file) ? "its " + file + " names no class" : "it has no " + file)
                + "; put a JAR that a plug-in needs into one folder with the plug-in";
    }

    /// Returns whether a place and digest are those of this plug-in, in this version.
    boolean sameAs(Path otherPlace, Digest otherDigest) {
        return place.equals(otherPlace) && digest.hex().equals(otherDigest.hex());
    }
}
