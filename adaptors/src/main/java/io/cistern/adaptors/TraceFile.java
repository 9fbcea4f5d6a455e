package io.cistern.adaptors;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Locale;
import java.util.zip.GZIPOutputStream;

/// A text file of rows, gzipped if its name ends in `.gz`. Numbers are written as digits into a
/// buffer, without garbage.
///
/// **Threads.** Guarded by its owner's lock.
final class TraceFile implements AutoCloseable {
    /// Holds hundreds of rows: one system call writes them, and little is lost if the process is killed.
    private static final int BUFFER_BYTES = 1 << 16;
    /// An op and six numbers of at most 19 digits, with their commas.
    private static final int MAX_ROW_BYTES = 128;
    private static final int MAX_DIGITS = 19;

    private final FileChannel locked;

    /// Not a stream over the channel: an interrupt of any thread that writes would close the channel.
    private final OutputStream out;
    private final byte[] buffer = new byte[BUFFER_BYTES];
    private int length;

    /// Opens a file, which is created or truncated.
    ///
    /// @throws IOException if the file can't be written, or another log is writing it
    TraceFile(Path file, String header) throws IOException {
        locked = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        try {
            lock(file, locked);
            OutputStream plain = Files.newOutputStream(file);
            boolean packed = file.toString().toLowerCase(Locale.ROOT).endsWith(".gz");
            out = packed ? new GZIPOutputStream(plain, BUFFER_BYTES) : plain;
            out.write((header + "\n").getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        } catch (IOException | RuntimeException e) {
            locked.close();
            throw e;
        }
    }

    /// Locks the file, since two logs in one file would both be unusable; `/dev/null` takes any number.
    /// Closing the channel releases the lock.
    private static void lock(Path file, FileChannel channel) throws IOException {
        FileLock lock;
        try {
            lock = channel.tryLock();
        } catch (OverlappingFileLockException e) {
            lock = null;
        }
        if (lock == null && Files.isRegularFile(file)) {
            throw new IOException(file + " is being written by another log");
        }
    }

    /// Appends a row.
    void row(char op, long id, long byteSize, long stream, int device, long thread, long nanos) throws IOException {
        if (length > BUFFER_BYTES - MAX_ROW_BYTES) {
            flush();
        }
        buffer[length++] = (byte) op;
        number(id);
        number(byteSize);
        number(stream);
        number(device);
        number(thread);
        number(nanos);
        buffer[length++] = '\n';
    }

    private void number(long value) {
        buffer[length++] = ',';
        int digits = 1;
        for (long rest = value / 10; rest != 0; rest /= 10) {
            digits++;
        }
        assert value >= 0 && digits <= MAX_DIGITS : value;
        long rest = value;
        for (int at = length + digits - 1; at >= length; at--) {
            buffer[at] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        length += digits;
    }

    /// Writes the buffer to the file, or to the compressor.
    void flush() throws IOException {
        out.write(buffer, 0, length);
        length = 0;
        out.flush();
    }

    @Override
    public void close() throws IOException {
        try (locked;
                out) {
            flush();
        }
    }
}
