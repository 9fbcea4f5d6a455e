package io.cistern.cli.common;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.SystemCallException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import org.jspecify.annotations.Nullable;

/// Standard output, for results alone. What Java code prints elsewhere goes to standard error; what native code
/// prints does too, from [#keepNativeCodeOut] on: C buffers it, and writes it some time, at the latest when the
/// process ends, so that no way of looking after single calls would do.
///
/// Then file descriptor 1 is standard error, and results go to a copy of what it was.
public final class ResultStream extends OutputStream {
    private static final int STANDARD_OUTPUT = 1;
    private static final int STANDARD_ERROR = 2;
    /// What the system's C library calls it, which is all that Java tells.
    private static final String BROKEN_PIPE = "Broken pipe";

    /// The process's own, if its `main` made one.
    private static @Nullable ResultStream installed;

    private OutputStream to = new FileOutputStream(FileDescriptor.out);
    private boolean nativeCodeIsOut;
    private boolean unread;

    private ResultStream() {}

    /// Makes the process's standard output one for results.
    public static ResultStream install() {
        System.setOut(System.err);
        ResultStream results = new ResultStream();
        installed = results;
        return results;
    }

    /// Called before native code of other people may run.
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
        try {
            to = new Output(output.duplicate());
            output.replaceBy(new Descriptor(STANDARD_ERROR));
        } catch (IOException e) {
            throw new UsageException("standard output can't be kept for results: " + e.getMessage());
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

    /// Whether a write failed since nobody reads any more.
    public synchronized boolean isUnread() {
        return unread;
    }

    /// The copy of standard output, which Java has no stream for.
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
