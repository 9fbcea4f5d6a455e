package io.cistern.loader;

import io.cistern.cuda.settings.RefusedFileException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/// The contents of a JAR, read once. So the loaded bytes are those that were checked, and overwriting the
/// file has no effect. Immutable.
///
/// A JAR ends with a directory of its entries. A half-written JAR has no directory, or one with a different
/// number of entries. For a multi-release JAR, the image has the entries for the running Java.
///
/// @param file the path from which it was read
/// @param entries the contents of the entries, by name
/// @param byteSize the sum of their sizes in bytes
record PluginImage(Path file, Map<String, byte[]> entries, int byteSize) {
    /// The problem of a JAR that exceeds the rest of [PluginDirectory]'s share of the Java heap.
    static final String TOO_LARGE =
            "larger than the rest of the eighth of the Java heap that plug-ins may use; raise -Xmx";

    private static final String SERVICES = "META-INF/services/";

    /// Room for hundreds of providers; the service loader creates objects for each line.
    private static final int MAX_SERVICES_BYTES = 1 << 16;

    private static final String VERSIONS = "META-INF/versions/";

    /// `PK\5\6`. In the 22 bytes from there, the number of entries is at 10 and the length of the comment that
    /// follows at 20.
    private static final int END_SIGNATURE = 0x06054b50;

    private static final int END_BYTES = 22;
    private static final int COUNT_AT = 10;
    private static final int COMMENT_AT = 20;
    private static final int MAX_COMMENT = 0xFFFF;

    static PluginImage of(Path file, byte[] bytes, int maxBytes) throws IOException {
        int expected = entryCount(bytes);
        Map<String, byte[]> all = new HashMap<>();
        int read = 0;
        int left = maxBytes;
        try (ZipInputStream in = new ZipInputStream(new ByteArrayInputStream(bytes))) {
            for (ZipEntry entry = in.getNextEntry(); entry != null && read <= expected; entry = in.getNextEntry()) {
                read++;
                byte[] content = unpacked(entry.getName(), in, left);
                left -= content.length;
                all.put(entry.getName(), content);
            }
        } catch (IllegalArgumentException e) { // a name is not UTF-8
            throw new IOException(e);
        }
        if (read != expected) {
            throw new IOException(read + " entries where its directory has " + expected);
        }
        return new PluginImage(file, Map.copyOf(forThisJava(all)), maxBytes - left);
    }

    private static byte[] unpacked(String name, ZipInputStream in, int left) throws IOException {
        byte[] content = in.readNBytes(left);
        if (in.read() >= 0) {
            throw new RefusedFileException("is, unpacked, " + TOO_LARGE);
        }
        if (name.startsWith(SERVICES) && content.length > MAX_SERVICES_BYTES) {
            throw new RefusedFileException("has a services file of " + content.length + " bytes");
        }
        return content;
    }

    private static int entryCount(byte[] bytes) throws IOException {
        int last = bytes.length - END_BYTES;
        for (int at = last; at >= Math.max(0, last - MAX_COMMENT); at--) {
            if (number(bytes, at, 4) == END_SIGNATURE && number(bytes, at + COMMENT_AT, 2) == last - at) {
                return number(bytes, at + COUNT_AT, 2);
            }
        }
        throw new IOException("it has no central directory at its end");
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
}
