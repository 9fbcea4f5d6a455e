package io.cistern.benchmarks.figures;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;

/// Reads a file out of a `.tar.gz`, as `run-on-gpu` makes them.
final class TarGz {
    private static final int BLOCK_BYTES = 512;
    private static final int NAME_BYTES = 100;
    private static final int SIZE_OFFSET = 124;
    private static final int SIZE_BYTES = 12;

    private TarGz() {}

    /// @throws NoSuchFileException if the archive has no such file
    static String read(Path archive, String name) throws IOException {
        try (InputStream in = new GZIPInputStream(new BufferedInputStream(Files.newInputStream(archive)))) {
            for (byte[] header = in.readNBytes(BLOCK_BYTES);
                    field(header, 0, NAME_BYTES).length() > 0; ) {
                int byteSize =
                        Integer.parseInt(field(header, SIZE_OFFSET, SIZE_BYTES).trim(), Byte.SIZE);
                int padding = Math.floorMod(-byteSize, BLOCK_BYTES);
                if (field(header, 0, NAME_BYTES).equals(name)) {
                    return new String(in.readNBytes(byteSize), StandardCharsets.UTF_8);
                }
                in.skipNBytes(byteSize + padding);
                header = in.readNBytes(BLOCK_BYTES);
            }
        }
        throw new NoSuchFileException(archive + "!" + name);
    }

    /// Up to the first zero byte.
    private static String field(byte[] header, int offset, int length) {
        int end = offset;
        while (end < Math.min(header.length, offset + length) && header[end] != 0) {
            end++;
        }
        return new String(
                header, Math.min(offset, header.length), Math.max(0, end - offset), StandardCharsets.US_ASCII);
    }
}
