package io.cistern.cli.trace;

import io.cistern.cli.common.ByteSize;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.ZipException;
import org.jspecify.annotations.Nullable;

/// Reads a trace line by line in bounded memory. A line longer than any legal row is an error as soon as that
/// many bytes were read, and so is a file larger than any sensible trace. So neither an endless line nor a file
/// that unpacks to terabytes does harm.
final class TraceLines {
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

    /// Reads from a stream that is already unpacked.
    ///
    /// @param maxBytes the most bytes that the stream may have
    TraceLines(String file, InputStream in, long maxBytes) {
        this.file = file;
        this.in = in;
        this.maxBytes = maxBytes;
    }

    /// Returns the next line without its end, or null after the last line.
    @Nullable
    String next() throws TraceException {
        lineNumber++;
        int length = 0;
        int next = read();
        if (next < 0) {
            return null;
        }
        while (next >= 0 && next != '\n') {
            if (length == MAX_LINE_BYTES) {
                if (lineNumber == 1 && line[0] == '{') {
                    throw error("JSON is no trace; of a snapshot, cistern report makes a page");
                }
                throw error("line longer than " + MAX_LINE_BYTES + " bytes");
            }
            line[length++] = (byte) next;
            next = read();
        }
        if (length > 0 && line[length - 1] == '\r') {
            length--;
        }
        return new String(line, 0, length, java.nio.charset.StandardCharsets.ISO_8859_1);
    }

    /// Returns an error for the line that [#next] returned last.
    TraceException error(String what) {
        return new TraceException(file, lineNumber, what);
    }

    private int read() throws TraceException {
        if (position == limit && !fill()) {
            return -1;
        }
        return buffer[position++] & 0xff;
    }

    private boolean fill() throws TraceException {
        try {
            limit = in.read(buffer);
        } catch (EOFException e) {
            throw error("the gzip data ends too early: the file was cut");
        } catch (ZipException e) {
            throw error("corrupt gzip data: " + e.getMessage());
        } catch (IOException e) {
            throw error("can't be read: " + e.getMessage());
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
