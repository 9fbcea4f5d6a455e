package io.cistern.cli.common;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serial;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;

/// Opens files that the command line names, and words what is wrong with them.
public final class InputFile {
    private static final int BUFFER_BYTES = 1 << 16;
    /// As a zip archive of gzip files.
    private static final int MOST_LAYERS = 2;

    /// Java's replacement for a byte that it can't decode.
    private static final char REPLACED = '\uFFFD';

    private InputFile() {}

    public interface Parser<T> {
        /// Reads the content.
        ///
        /// @param in unpacked, with marks
        /// @throws InputException if the content is damaged
        T parse(String file, InputStream in) throws InputException, IOException;
    }

    /// Reads a file, unpacked if it is packed. On a terminal, it shows how much of a large one was read.
    ///
    /// @throws InputException if it can't be read or is damaged
    public static <T> T read(Path file, Parser<T> parser) throws InputException {
        String name = file.toString();
        Path found = found(file);
        if (Files.isDirectory(found)) {
            throw new InputException(name, "is a folder; name a file in it");
        }
        try (InputStream in = Progress.ofReading(Files.newInputStream(found), Files.size(found));
                InputStream content = unpacked(name, in)) {
            return parser.parse(name, content);
        } catch (IOException e) {
            boolean isDash = name.equals("-") && e instanceof NoSuchFileException;
            throw new InputException(name, why(e) + (isDash ? "; name standard input /dev/stdin" : ""));
        }
    }

    /// Returns the file that is called so. Java replaces bytes of a name that are not UTF-8, so it is looked for.
    private static Path found(Path file) {
        if (file.toString().indexOf(REPLACED) < 0 || Files.exists(file)) {
            return file;
        }
        Path folder = file.toAbsolutePath().getParent();
        String name = String.valueOf(file.getFileName());
        try (Stream<Path> beside = Files.list(folder)) {
            return beside.filter(each -> String.valueOf(each.getFileName()).equals(name))
                    .findFirst()
                    .orElse(file);
        } catch (IOException e) {
            return file;
        }
    }

    /// Returns the content of a file, unpacked if it begins as a gzip file or a zip archive does.
    ///
    /// @return a stream with marks
    /// @throws InputException if it can't be unpacked
    public static InputStream unpacked(String file, InputStream in) throws InputException, IOException {
        InputStream content = new BufferedInputStream(in, BUFFER_BYTES);
        for (int layer = 0; layer < MOST_LAYERS; layer++) {
            switch (Content.of(content)) {
                case GZIP -> content = gunzipped(file, content);
                case ZIP -> content = ZipEntries.recording(file, content);
                default -> {
                    return content;
                }
            }
        }
        return content;
    }

    private static InputStream gunzipped(String file, InputStream in) throws InputException, IOException {
        try {
            return new BufferedInputStream(new Gunzipped(in), BUFFER_BYTES);
        } catch (EOFException e) {
            throw new InputException(file, why(e));
        }
    }

    /// Compressed data that ends too early.
    private static final class CutOffException extends EOFException {
        @Serial
        private static final long serialVersionUID = 1L;

        CutOffException(long unpackedBytes, EOFException cause) {
            super("the file is cut off at byte " + unpackedBytes + " of the unpacked data");
            initCause(cause);
        }
    }

    /// Counts what it unpacks, to say where the data ends if that is too early.
    private static final class Gunzipped extends GZIPInputStream {
        private long unpackedBytes;

        Gunzipped(InputStream in) throws IOException {
            super(in, BUFFER_BYTES);
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            try {
                int count = super.read(buffer, offset, length);
                unpackedBytes += Math.max(0, count);
                return count;
            } catch (EOFException e) {
                throw new CutOffException(unpackedBytes, e);
            }
        }
    }

    /// Returns what a failed read means, for people.
    public static String why(IOException failure) {
        return switch (failure) {
            case NoSuchFileException _ -> "no such file";
            case AccessDeniedException _ -> "permission denied";
            case CutOffException _ -> String.valueOf(failure.getMessage());
            case EOFException _ -> "the file is cut off";
            case ZipException _ -> "the compressed data is damaged: " + failure.getMessage();
            default -> "can't be read: " + failure.getMessage();
        };
    }
}
