package io.cistern.loader;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/// The contents of a JAR, read once: what was checked is what is loaded, and whoever writes a new version over the
/// file disturbs nobody. Immutable.
///
/// A JAR ends with a directory of its entries; one that was only half written has none, or one with another number of
/// entries. Of a multi-release JAR these are the entries for the Java that runs.
///
/// @param file where it was
/// @param entries by name
record PluginImage(Path file, Map<String, byte[]> entries) {
    private static final String VERSIONS = "META-INF/versions/";

    /// `PK\5\6`, the number of entries at 10, the length of the comment at 20, the whole 22 bytes without that.
    private static final int END_SIGNATURE = 0x06054b50;

    private static final int END_BYTES = 22;
    private static final int COUNT_AT = 10;
    private static final int COMMENT_AT = 20;
    private static final int MOST_COMMENT = 0xFFFF;

    /// @throws IOException if the bytes are no whole JAR
    static PluginImage of(Path file, byte[] bytes) throws IOException {
        int expected = entryCount(bytes);
        Map<String, byte[]> all = new HashMap<>();
        int read = 0;
        try (ZipInputStream in = new ZipInputStream(new ByteArrayInputStream(bytes))) {
            for (ZipEntry entry = in.getNextEntry(); entry != null; entry = in.getNextEntry()) {
                read++;
                all.put(entry.getName(), in.readAllBytes());
            }
        } catch (IllegalArgumentException e) { // A name that is no UTF-8.
            throw new IOException(e);
        }
        if (read != expected) {
            throw new IOException(read + " entries where its directory has " + expected);
        }
        return new PluginImage(file, Map.copyOf(forThisJava(all)));
    }

    private static int entryCount(byte[] bytes) throws IOException {
        int last = bytes.length - END_BYTES;
        for (int at = last; at >= Math.max(0, last - MOST_COMMENT); at--) {
            if (number(bytes, at, 4) == END_SIGNATURE && number(bytes, at + COMMENT_AT, 2) == last - at) {
                return number(bytes, at + COUNT_AT, 2);
            }
        }
        throw new IOException("it has no directory at its end");
    }

    private static int number(byte[] bytes, int at, int length) {
        int number = 0;
        for (int i = length - 1; i >= 0; i--) {
            number = (number << Byte.SIZE) | (bytes[at + i] & 0xFF);
        }
        return number;
    }

    private static Map<String, byte[]> forThisJava(Map<String, byte[]> all) throws IOException {
        if (!isMultiRelease(all)) {
            return all;
        }
        Map<String, byte[]> chosen = new HashMap<>(all);
        for (int version = 9; version <= Runtime.version().feature(); version++) {
            String prefix = VERSIONS + version + "/";
            all.forEach((name, content) -> {
                if (name.startsWith(prefix)) {
                    chosen.put(name.substring(prefix.length()), content);
                }
            });
        }
        return chosen;
    }

    private static boolean isMultiRelease(Map<String, byte[]> all) throws IOException {
        byte[] manifest = all.get(JarFile.MANIFEST_NAME);
        return manifest != null
                && new String(manifest, StandardCharsets.UTF_8).contains("Multi-Release")
                && Boolean.parseBoolean(new Manifest(new ByteArrayInputStream(manifest))
                        .getMainAttributes()
                        .getValue(Attributes.Name.MULTI_RELEASE));
    }

    Optional<byte[]> entry(String name) {
        return Optional.ofNullable(entries.get(name));
    }

    /// Names of all entries.
    Set<String> names() {
        return entries.keySet();
    }
}
