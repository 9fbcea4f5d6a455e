package io.cistern.cli.trace;

import io.cistern.cli.common.Content;
import io.cistern.cli.common.InputException;
import io.cistern.cli.common.InputFile;
import io.cistern.cli.common.InputLines;
import io.cistern.cli.trace.Recorder.Refused;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads traces of all formats, as described in `docs/trace-format.md`: CSV, maybe packed; the header tells the
/// format. The bytes of a free must be a number but are ignored; in format 1, so is its stream.
///
/// Files are not trusted: memory and time are bounded, and every defect is an [InputException] that
/// names the line.
public final class TraceReader {
    private static final String HEADER = "op,id,bytes,stream";
    /// Format 2 adds these columns; the reader checks the last one but ignores it.
    private static final String HEADER_2 = HEADER + ",device,thread,nanos";

    /// Format 3 adds the number of a call stack, which a file beside the trace explains.
    private static final String HEADER_3 = HEADER_2 + ",stack";

    private static final String LEGAL = "the first line must be " + HEADER + " or " + HEADER_2 + "[,stack]";

    private static final int COLUMNS = 4;
    private static final int COLUMNS_2 = 7;
    private static final int COLUMNS_3 = 8;
    /// Enough for the most rows at 128 bytes each.
    public static final long MAX_TEXT_BYTES = 128L * Trace.MAX_ROWS;

    private final InputLines lines;
    private final TraceRows builder = new TraceRows();

    /// The memory at each refusal; null if requests that were refused are skipped.
    private final @Nullable Iterator<Refused> refused;
    private final int stackCount;

    private TraceReader(InputLines lines, @Nullable Iterator<Refused> refused, int stackCount) {
        this.lines = lines;
        this.refused = refused;
        this.stackCount = stackCount;
    }

    public static Trace read(Path file) throws InputException {
        return InputFile.read(file, TraceReader::parse);
    }

    /// Reads a stream, unpacked if it is packed.
    public static Trace read(String file, InputStream in) throws InputException, IOException {
        return parse(file, InputFile.unpacked(file, in));
    }

    static Trace parse(String file, InputStream text) throws InputException, IOException {
        switch (Content.of(text)) {
            case TRACE, EMPTY, OTHER -> {}
            case Content other -> throw other.error(file, "a trace");
        }
        TraceReader reader = new TraceReader(new InputLines(file, text, MAX_TEXT_BYTES), null, 0);
        reader.readRows();
        return reader.builder.build(nameOf(file));
    }

    /// Reads a trace as a recording, in which refused requests are made again.
    ///
    /// @param text its content, unpacked
    /// @param callStacks the stacks that the last column of format 3 numbers; those that are missing are not known
    public static Recording recording(String file, InputStream text, CallStacks callStacks, Recorder recorder)
            throws InputException {
        TraceReader reader = new TraceReader(
                new InputLines(file, text, MAX_TEXT_BYTES),
                recorder.refused().iterator(),
                callStacks.stacks().size());
        reader.readRows();
        return reader.builder.recording(nameOf(file), callStacks, recorder);
    }

    /// Returns, for example, `gpt2_train` for `traces/gpt2_train.csv.gz`.
    public static String nameOf(String file) {
        return InputException.oneLine(file.substring(file.lastIndexOf('/') + 1))
                .replaceFirst("(?i)(\\.csv)?(\\.gz)?$", "");
    }

    private void readRows() throws InputException {
        String columns = lines.next();
        if (columns == null) {
            throw lines.error("empty file; " + LEGAL);
        }
        if (!List.of(HEADER, HEADER_2, HEADER_3).contains(columns)) {
            throw lines.error("no header; " + LEGAL);
        }
        for (String line = lines.next(); line != null; line = lines.next()) {
            switch (columns) {
                case HEADER -> readFirst(line);
                case HEADER_2 -> readSecond(line, commas(line, COLUMNS_2, HEADER_2), line.length(), CallStacks.NONE);
                default -> readThird(line);
            }
        }
        if (builder.isEmpty()) {
            throw lines.error("no rows after the header");
        }
    }

    private void readFirst(String line) throws InputException {
        int[] commas = commas(line, COLUMNS, HEADER);
        long id = number("id", line, commas[0] + 1, commas[1]);
        long byteSize = byteSize(line, commas);
        long stream = number("stream", line, commas[2] + 1, line.length());
        try {
            switch (line.substring(0, commas[0])) {
                case "a" -> builder.allocate(id, byteSize, 0, stream);
                case "f" -> builder.free(id);
                default -> throw lines.error("op must be a or f");
            }
        } catch (IllegalArgumentException e) {
            throw lines.error(String.valueOf(e.getMessage()));
        }
    }

    private void readThird(String line) throws InputException {
        int[] commas = commas(line, COLUMNS_3, HEADER_3);
        long stack = number("stack", line, commas[6] + 1, line.length());
        readSecond(line, commas, commas[6], stack < stackCount ? (int) stack : CallStacks.NONE);
    }

    /// Reads a row of format 2.
    ///
    /// @param end where its last column ends
    private void readSecond(String line, int[] commas, int end, int stack) throws InputException {
        long id = number("id", line, commas[0] + 1, commas[1]);
        long byteSize = byteSize(line, commas);
        long stream = number("stream", line, commas[2] + 1, commas[3]);
        long device = number("device", line, commas[3] + 1, commas[4]);
        builder.thread(number("thread", line, commas[4] + 1, commas[5]));
        builder.origin(number("time", line, commas[5] + 1, end), stack);
        try {
            switch (line.substring(0, commas[0])) {
                case "a" -> builder.allocate(id, byteSize, device, stream);
                case "f" -> builder.free(id, device, stream);
                case "u" -> builder.use(id, device, stream);
                case "w" -> builder.await(device, stream, id);
                case "e" -> builder.end(device, stream);
                case "t" -> builder.trim(device);
                case "o" -> { // An allocation that was refused during recording took no memory.
                    if (refused == null) {
                        builder.skipRefused();
                    } else {
                        builder.refused(byteSize, device, stream, refused.hasNext() ? refused.next() : Refused.UNKNOWN);
                    }
                }
                default -> throw lines.error("op must be a, f, u, w, e, o or t");
            }
        } catch (IllegalArgumentException e) {
            throw lines.error(String.valueOf(e.getMessage()));
        }
    }

    /// Returns the ends of all columns but the last.
    private int[] commas(String line, int columns, String header) throws InputException {
        int[] commas = new int[columns - 1];
        int comma = -1;
        for (int i = 0; i < commas.length; i++) {
            comma = line.indexOf(',', comma + 1);
            if (comma < 0) {
                throw lines.error("short row; expected " + header);
            }
            commas[i] = comma;
        }
        return commas;
    }

    private long byteSize(String line, int[] commas) throws InputException {
        long byteSize = number("size", line, commas[1] + 1, commas[2]);
        if (byteSize > Trace.MAX_BLOCK_BYTES) {
            throw lines.error("size over 1 EiB: " + line.substring(commas[1] + 1, commas[2]));
        }
        return byteSize;
    }

    /// Parses a number of at most 63 bits; larger numbers are clamped.
    private long number(String what, String line, int from, int to) throws InputException {
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
