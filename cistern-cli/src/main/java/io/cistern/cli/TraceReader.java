package io.cistern.cli;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import java.util.zip.ZipException;

/// Reads traces: CSV, gzipped if the name ends in `.gz`, with the header `op,id,bytes,stream`. `a,ID,BYTES,STREAM`
/// allocates, `f,ID,BYTES,STREAM` frees (its bytes and stream are checked to be numbers and then ignored).
///
/// Files are not trusted: memory and time are bounded, and everything wrong is a [TraceException] that names the
/// line.
final class TraceReader {
    private static final String HEADER = "op,id,bytes,stream";
    /// What some spreadsheets put before the first line: U+FEFF in UTF-8, here read byte by byte.
    private static final String BYTE_ORDER_MARK = "\u00ef\u00bb\u00bf";
    /// As many bytes as the most rows would take at 128 each.
    private static final long MAX_TEXT_BYTES = 128L * TraceBuilder.MAX_ROWS;
    /// Larger than any address space; sums of it still fit into a `long` for a while.
    private static final long MAX_BLOCK_BYTES = 1L << 60;

    private final TraceLines lines;
    private final TraceBuilder builder = new TraceBuilder();

    private TraceReader(TraceLines lines) {
        this.lines = lines;
    }

    /// Reads a file.
    static Trace read(Path file) throws TraceException {
        String shown = file.toString();
        if (Files.isDirectory(file)) {
            throw new TraceException(shown, "is a folder; name the .csv or .csv.gz files in it");
        }
        try (InputStream in = Files.newInputStream(file)) {
            return read(shown, in);
        } catch (NoSuchFileException e) {
            throw new TraceException(shown, "no such file");
        } catch (IOException e) {
            throw new TraceException(shown, "can't be read: " + e.getMessage());
        }
    }

    /// Reads a stream; the name tells whether it is gzipped.
    static Trace read(String file, InputStream in) throws TraceException, IOException {
        InputStream text = file.toLowerCase(Locale.ROOT).endsWith(".gz") ? unzip(file, in) : in;
        return new TraceReader(new TraceLines(file, text, MAX_TEXT_BYTES)).read(nameOf(file));
    }

    /// `gpt2_train` for `traces/gpt2_train.csv.gz`.
    static String nameOf(String file) {
        return file.substring(file.lastIndexOf('/') + 1).replaceFirst("(?i)(\\.csv)?(\\.gz)?$", "");
    }

    private static InputStream unzip(String file, InputStream in) throws TraceException, IOException {
        try {
            return new GZIPInputStream(in, 1 << 16);
        } catch (EOFException e) {
            throw new TraceException(file, 1, "empty or cut gzip file");
        } catch (ZipException e) {
            throw new TraceException(file, 1, "not a gzip file: " + e.getMessage());
        }
    }

    private Trace read(String name) throws TraceException {
        String header = lines.next();
        if (header == null) {
            throw lines.error("empty file; the first line must be " + HEADER);
        }
        if (!header.equals(HEADER) && !header.equals(BYTE_ORDER_MARK + HEADER)) {
            throw lines.error("no header; the first line must be " + HEADER);
        }
        for (String line = lines.next(); line != null; line = lines.next()) {
            readRow(line);
        }
        if (builder.isEmpty()) {
            throw lines.error("no rows after the header");
        }
        return builder.build(name);
    }

    private void readRow(String line) throws TraceException {
        int first = line.indexOf(',');
        int second = line.indexOf(',', first + 1);
        int third = line.indexOf(',', second + 1);
        if (first < 0 || second <= first || third <= second) {
            throw lines.error("short row; expected op,id,bytes,stream");
        }
        long id = number("id", line, first + 1, second);
        long byteSize = number("size", line, second + 1, third);
        long stream = number("stream", line, third + 1, line.length());
        if (byteSize > MAX_BLOCK_BYTES) {
            throw lines.error("size over 1 EiB: " + line.substring(second + 1, third));
        }
        try {
            switch (line.substring(0, first)) {
                case "a" -> builder.allocate(id, byteSize, stream);
                case "f" -> builder.free(id);
                default -> throw lines.error("op must be a or f");
            }
        } catch (IllegalArgumentException e) {
            throw lines.error(String.valueOf(e.getMessage()));
        }
    }

    /// A number of at most 63 bits; one with more digits is taken as the largest.
    private long number(String what, String line, int from, int to) throws TraceException {
        if (from < to && line.charAt(from) == '-') {
            throw lines.error("negative " + what);
        }
        long value = 0;
        for (int i = from; i < to; i++) {
            int digit = line.charAt(i) - '0';
            if (digit < 0 || digit > 9) {
                throw lines.error(what + " is not a whole number");
            }
            value = value > (Long.MAX_VALUE - digit) / 10 ? Long.MAX_VALUE : 10 * value + digit;
        }
        if (from == to) {
            throw lines.error("no " + what);
        }
        return value;
    }
}
