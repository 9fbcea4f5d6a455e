package io.cistern.loader;

import java.nio.file.Path;

/// One plug-in of a plug-in directory, loaded.
///
/// @param place the JAR, or the folder of its JARs
/// @param digest SHA-256 of its contents
/// @param loader of its classes
record Plugin(Path place, String digest, PluginClassLoader loader) {
    /// Enough to tell versions apart.
    private static final int DIGEST_SHOWN = 12;

    /// An origin with its digest, so that another version is another origin.
    static String origin(String place, String digest) {
        return place + ", sha256 " + digest.substring(0, DIGEST_SHOWN);
    }

    /// Whether another one is the same version of the same.
    boolean sameAs(Path otherPlace, String otherDigest) {
        return place.equals(otherPlace) && digest.equals(otherDigest);
    }
}
