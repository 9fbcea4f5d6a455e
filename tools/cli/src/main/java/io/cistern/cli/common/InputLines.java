package io.cistern.cli.common;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/// Reads a trace or a log line by line in bounded memory. A line longer than any legal row is an error as soon as
/// that many bytes were read, and so is a file larger than any sensible trace. So neither an endless line nor a
/// file that unpacks to terabytes does harm.
public final class InputLines {
    /// Well over the longest row: an op and six numbers of at most 19 digits.
    private static final int MAX_LINE_BYTES = 256;

    private final String file;
    private final InputStream in;
    private final long maxBytes;
    private final byte[] buffer = new byte[1 << 16];
    private final byte[] line = new byte[MAX_LINE_BYTES];
    private int position;
    private int limit;
    private long bytesRead;
    private long lineNumber;
    private boolean cut;

    /// Reads from a stream that is already unpacked.
    ///
    /// @param maxBytes the most bytes that the stream may have
    public InputLines(String file, InputStream in, long maxBytes) {
        this.file = file;
        this.in = in;
        this.maxBytes = maxBytes;
    }

    /// Returns the next line without its end, or null after the last line.
    public @Nullable String next() throws InputException {
        lineNumber++;
        int length = 0;
        int next = read();
        if (next < 0) {
            return null;
        }
        while (next >= 0 && next != '\n') {
            if (length == MAX_LINE_BYTES) {
                throw error("line longer than " + MAX_LINE_BYTES + " bytes");
            }
            line[length++] = (byte) next;
            next = read();
        }
        cut = next < 0;
        if (length > 0 && line[length - 1] == '\r') {
            length--;
        }
        String text = new String(line, 0, length, StandardCharsets.ISO_8859_1);
        return lineNumber == 1 ? Content.withoutMark(text) : text;
    }

    /// Returns whether the line that [#next] returned last has no end: it is the file's last one, and its writer
    /// may have been stopped in the middle of it.
    public boolean isCut() {
        return cut;
    }

    /// Returns an error for the line that [#next] returned last.
    public InputException error(String what) {
        return new InputException(file, lineNumber, what);
    }

    private int read() throws InputException {
        if (position == limit && !fill()) {
            return -1;
        }
        return buffer[position++] & 0xff;
    }

    private boolean fill() throws InputException {
        try {
            limit = in.read(buffer);
        } catch (IOException e) {
            throw error(InputFile.why(e));
        }
        position = 0;
        bytesRead += Math.max(limit, 0);
        if (bytesRead > maxBytes) {
            throw error("more than " + ByteSize.format(maxBytes) + " of text");
        }
        limit = Math.max(limit, 0);
        return limit > 0;
    }
}
