package io.cistern.cli.common;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.SystemCallException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.jspecify.annotations.Nullable;

/// Keeps standard output only for results. Output of other Java code goes to standard error. After
/// [#keepNativeCodeOut], so does output of native code: C buffers it and may write it as late as the end of the
/// process, so diverting it around single calls would not be enough.
///
/// From then on, file descriptor 1 is standard error, and results go to a copy of the original descriptor.
public final class ResultStream extends OutputStream {
    private static final int STANDARD_OUTPUT = 1;
    private static final int STANDARD_ERROR = 2;
    /// The system's C library words the error like this, and Java passes on only the message.
    private static final String BROKEN_PIPE = "Broken pipe";

    /// The process's stream, if its `main` installed one.
    private static @Nullable ResultStream installed;

    private OutputStream to = new FileOutputStream(FileDescriptor.out);
    private boolean nativeCodeIsOut;
    private boolean unread;

    private ResultStream() {}

    /// Makes the process's standard output a stream for results.
    public static ResultStream install() {
        System.setOut(System.err);
        ResultStream results = new ResultStream();
        installed = results;
        return results;
    }

    /// Diverts the output of native code. Called before other people's native code may run.
    static void keepNativeCodeOut() {
        if (installed != null) {
            installed.divert();
        }
    }

    private synchronized void divert() {
        if (nativeCodeIsOut) {
            return;
        }
        nativeCodeIsOut = true;
        Descriptor output = new Descriptor(STANDARD_OUTPUT);
        if (!output.isWritable()) {
            throw new UsageException("standard output can't be written: it is closed, or open only for reading");
        }
        try {
            to = new Output(output.duplicate());
            output.replaceBy(new Descriptor(STANDARD_ERROR));
        } catch (IOException e) {
            throw new UsageException("standard output can't be reserved for results: " + e.getMessage());
        }
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] bytes, int from, int length) throws IOException {
        try {
            to.write(bytes, from, length);
        } catch (IOException e) {
            unread |= isBrokenPipe(e);
            throw e;
        }
    }

    private static boolean isBrokenPipe(IOException e) {
        return e instanceof SystemCallException refused ? refused.isBrokenPipe() : BROKEN_PIPE.equals(e.getMessage());
    }

    /// Returns whether a write failed because the reader closed the pipe.
    public synchronized boolean isUnread() {
        return unread;
    }

    /// Writes to the copy of standard output, for which Java has no stream.
    private static final class Output extends OutputStream {
        private final Descriptor copy;

        Output(Descriptor copy) {
            this.copy = copy;
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            copy.write(bytes, from, length);
        }
    }
}
