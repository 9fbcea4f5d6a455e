package io.cistern.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Standard output, for results alone. What Java code prints elsewhere goes to standard error; what native code
/// prints does too, from [#keepNativeCodeOut] on: C buffers it, and writes it some time, at the latest when the
/// process ends, so that no way of looking after single calls would do.
///
/// Then file descriptor 1 is standard error, and results go to a copy of what it was.
final class ResultStream extends OutputStream {
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
    static ResultStream install() {
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
        try {
            int copy = Descriptors.copyOf(STANDARD_OUTPUT);
            to = new Descriptors.Output(copy);
            Descriptors.replace(STANDARD_OUTPUT, STANDARD_ERROR);
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
            unread |= BROKEN_PIPE.equals(e.getMessage());
            throw e;
        }
    }

    /// Whether a write failed since nobody reads any more.
    synchronized boolean isUnread() {
        return unread;
    }

    /// File descriptors, which Java has no names for.
    private static final class Descriptors {
        /// `F_DUPFD_CLOEXEC` of Linux: processes that this one starts do not have the copy.
        private static final int DUPLICATE_CLOSED_ON_EXEC = 1030;

        private static final int FIRST_OF_OURS = 3;

        private static final MethodHandle FCNTL = function(
                "fcntl",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT),
                Linker.Option.firstVariadicArg(2));
        private static final MethodHandle DUP2 = function(
                "dup2", FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
        private static final MethodHandle WRITE = function(
                "write",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG));

        private Descriptors() {}

        @SuppressWarnings("restricted")
        private static MethodHandle function(String name, FunctionDescriptor shape, Linker.Option... options) {
            Linker linker = Linker.nativeLinker();
            return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), shape, options);
        }

        static int copyOf(int descriptor) throws IOException {
            try {
                return checked((int) FCNTL.invokeExact(descriptor, DUPLICATE_CLOSED_ON_EXEC, FIRST_OF_OURS));
            } catch (Throwable e) {
                throw failed(e);
            }
        }

        static void replace(int descriptor, int by) throws IOException {
            try {
                checked((int) DUP2.invokeExact(by, descriptor));
            } catch (Throwable e) {
                throw failed(e);
            }
        }

        private static int checked(int result) throws IOException {
            if (result < 0) {
                throw new IOException("the system refused");
            }
            return result;
        }

        private static IOException failed(Throwable thrown) {
            if (thrown instanceof Error error) {
                throw error;
            }
            return thrown instanceof IOException e ? e : new IOException(thrown);
        }

        /// Writes to a descriptor.
        private static final class Output extends OutputStream {
            private final int descriptor;

            Output(int descriptor) {
                this.descriptor = descriptor;
            }

            @Override
            public void write(int b) throws IOException {
                write(new byte[] {(byte) b}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int from, int length) throws IOException {
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment text =
                            arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes).asSlice(from, length);
                    for (long written = 0; written < length; ) {
                        long more = (long) WRITE.invokeExact(descriptor, text.asSlice(written), length - written);
                        if (more <= 0) {
                            throw new IOException("standard output can't be written");
                        }
                        written += more;
                    }
                } catch (Throwable e) {
                    throw failed(e);
                }
            }
        }
    }
}
