package io.cistern.cuda.process;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// System calls of Linux that Java can't make itself, by their numbers on x86-64 and on arm64 and RISC-V, which
/// share theirs. All go through `syscall(2)`, whose arguments and result always have 64 bits.
enum SystemCall {
    CLOSE(3, 57),
    FCNTL(72, 25),
    WRITE(1, 64),
    DUP3(292, 24),
    PPOLL(271, 73),
    SOCKET(41, 198),
    BIND(49, 200),
    LISTEN(50, 201),
    ACCEPT4(288, 242),
    CONNECT(42, 203),
    SENDMSG(46, 211),
    RECVMSG(47, 212),
    GETSOCKOPT(55, 209),
    GETEUID(107, 175),
    EVENTFD2(290, 19),
    MEMFD_CREATE(319, 279),
    MEMBARRIER(324, 283),
    PIDFD_OPEN(434, 434),
    PIDFD_GETFD(438, 438);

    private static final int EINTR = 4;
    private static final int ARGUMENTS = 5;

    private final long onX86;
    private final long onNewer;

    SystemCall(long onX86, long onNewer) {
        this.onX86 = onX86;
        this.onNewer = onNewer;
    }

    /// Bound at the first call, so that a program without calls looks nothing up.
    private static final class Bound {
        static final StructLayout STATE = Linker.Option.captureStateLayout();
        static final VarHandle ERRNO = STATE.varHandle(PathElement.groupElement("errno"));

        /// Null if native access is denied: an exception in the initialiser could not be distinguished from
        /// a bug.
        static final @Nullable MethodHandle SYSCALL = bind();

        private static @Nullable MethodHandle bind() {
            try {
                return link();
            } catch (IllegalCallerException denied) {
                return null;
            }
        }

        @SuppressWarnings("restricted")
        private static MethodHandle link() {
            FunctionDescriptor shape =
                    FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
            Linker linker = Linker.nativeLinker();
            return linker.downcallHandle(
                    linker.defaultLookup().findOrThrow("syscall"),
                    shape,
                    Linker.Option.firstVariadicArg(1),
                    Linker.Option.captureCallState("errno"));
        }
    }

    /// Makes the call, and repeats it if a signal interrupts it.
    ///
    /// @throws SystemCallException if it returned -1
    /// @throws IllegalCallerException if native access is denied
    /// @throws UnsupportedOperationException on systems other than Linux, and on processors whose numbers are
    ///     unknown
    long call(long... arguments) throws SystemCallException {
        if (!isLinux()) {
            throw new UnsupportedOperationException(this + " is a Linux system call");
        }
        MethodHandle syscall = Bound.SYSCALL;
        if (syscall == null) {
            throw new IllegalCallerException(NativeCode.denied());
        }
        long number = number(architecture());
        long[] all = java.util.Arrays.copyOf(arguments, ARGUMENTS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(Bound.STATE);
            while (true) {
                long result = (long) syscall.invokeExact(state, number, all[0], all[1], all[2], all[3], all[4]);
                if (result != -1) {
                    return result;
                }
                int errno = (int) Bound.ERRNO.get(state, 0L);
                // Linux has closed the descriptor even if a signal came.
                if (errno != EINTR || this == CLOSE) {
                    throw new SystemCallException(this, errno);
                }
            }
        } catch (RuntimeException | Error | SystemCallException failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// @param architecture Java's name of the processor
    /// @throws UnsupportedOperationException if its numbers are unknown; those of another processor mean other
    ///     calls
    long number(String architecture) {
        return switch (architecture) {
            case "amd64", "x86_64" -> onX86;
            case "aarch64", "riscv64" -> onNewer;
            default ->
                throw new UnsupportedOperationException(
                        "the number of " + this + " on " + architecture + " is unknown");
        };
    }

    /// Returns whether the call numbers of this processor are known.
    static boolean isNumbered() {
        return switch (architecture()) {
            case "amd64", "x86_64", "aarch64", "riscv64" -> true;
            default -> false;
        };
    }

    private static String architecture() {
        return System.getProperty("os.arch", "");
    }

    static boolean isLinux() {
        return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).contains("linux");
    }
}
