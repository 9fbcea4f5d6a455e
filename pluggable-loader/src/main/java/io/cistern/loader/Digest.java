package io.cistern.loader;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The SHA-256 of a plug-in's contents, computed when it is first needed. The first digest of a process is
/// slow, and a program without a list of allowed digests needs none.
///
/// **Threads.** Any.
final class Digest {
    /// Characters shown; enough to tell versions apart.
    private static final int SHOWN = 12;

    /// The contents; emptied once they are digested.
    private List<byte[]> jars;

    private @Nullable String hex;

    /// @param jars the contents of one or more JARs, which must not change
    Digest(List<byte[]> jars) {
        this.jars = List.copyOf(jars);
    }

    /// Returns the digest in lower-case hexadecimal; for several JARs it is the digest of their digests.
    synchronized String hex() {
        if (hex == null) {
            StringBuilder digests = new StringBuilder();
            jars.forEach(jar -> digests.append(AllowedDigests.of(jar)));
            hex = jars.size() == 1
                    ? digests.toString()
                    : AllowedDigests.of(digests.toString().getBytes(StandardCharsets.US_ASCII));
            jars = List.of();
        }
        return hex;
    }

    /// Returns a place with the digest of its contents, so that another version is another origin.
    static String origin(String place, String hex) {
        return place + ", sha256 " + hex.substring(0, SHOWN);
    }
}
