package io.cistern.cli.common;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;

/// Opens files that the command line names, and words what is wrong with them.
public final class InputFile {
    private static final String GZIP = ".gz";

    private InputFile() {}

    /// Makes something of a file's content.
    public interface Parser<T> {
        /// Reads the content.
        ///
        /// @param file the file's name, for errors
        /// @param in unpacked, with marks
        /// @throws InputException if the content is damaged
        T parse(String file, InputStream in) throws InputException, IOException;
    }

    /// Reads a file, unpacked if its name ends in `.gz`.
    ///
    /// @throws InputException if it can't be read or is damaged
    public static <T> T read(Path file, Parser<T> parser) throws InputException {
        String name = file.toString();
        if (Files.isDirectory(file)) {
            throw new InputException(name, "is a folder; name a file in it");
        }
        try (InputStream in = Files.newInputStream(file)) {
            return parser.parse(name, unpacked(name, in));
        } catch (IOException e) {
            throw new InputException(name, why(e));
        }
    }

    /// Returns the content of a file, unpacked if its name ends in `.gz`.
    ///
    /// @return a stream with marks
    /// @throws InputException if it should be unpacked and can't be
    public static InputStream unpacked(String file, InputStream in) throws InputException, IOException {
        if (!file.toLowerCase(Locale.ROOT).endsWith(GZIP)) {
            return new BufferedInputStream(in);
        }
        try {
            return new BufferedInputStream(new GZIPInputStream(in, 1 << 16));
        } catch (EOFException e) {
            throw new InputException(file, "empty or cut gzip file");
        } catch (ZipException e) {
            throw new InputException(file, "not a gzip file: " + e.getMessage());
        }
    }

    /// Returns what a failed read means, for people.
    public static String why(IOException failure) {
        return switch (failure) {
            case NoSuchFileException _ -> "no such file";
            case AccessDeniedException _ -> "permission denied";
            case EOFException _ -> "the gzip data ends too early: the file was cut";
            case ZipException _ -> "corrupt gzip data: " + failure.getMessage();
            default -> "can't be read: " + failure.getMessage();
        };
    }
}
