package io.cistern.loader;

import java.nio.file.Path;

/// One plug-in of a plug-in directory, loaded.
///
/// @param place the JAR, or the folder of its JARs
/// @param digest of its contents
/// @param loader of its classes
record Plugin(Path place, Digest digest, PluginClassLoader loader) {
    /// Whether another one is the same version of the same.
    boolean sameAs(Path otherPlace, Digest otherDigest) {
        return place.equals(otherPlace) && digest.hex().equals(otherDigest.hex());
    }
}
