package io.cistern.cuda.process;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Locale;
import java.util.Optional;

/// A memory fence on every processor that runs a thread of this process, paid by the caller alone.
///
/// Two threads that each write one word and then read the other's need a fence between write and read on both sides.
/// Where one side is hot and the other rare, the rare side can pay for both: the hot side keeps only the order of its
/// instructions ([java.lang.invoke.VarHandle#acquireFence], which costs nothing on x86), and the rare side calls
/// [#everywhere], which interrupts the others. That is `membarrier(2)` on Linux (4.14, private expedited) and
/// `FlushProcessWriteBuffers` on Windows; some microseconds.
///
/// **Threads.** Any, at any time.
public final class ProcessFence {
    private static final int REGISTER_PRIVATE_EXPEDITED = 1 << 4;
    private static final int PRIVATE_EXPEDITED = 1 << 3;

    private static final Optional<MethodHandle> FENCE = bind();

    private ProcessFence() {}

    /// Whether [#everywhere] works here.
    public static boolean isSupported() {
        return FENCE.isPresent();
    }

    /// Orders all that any thread of this process did before, against all that it does after.
    ///
    /// @throws IllegalStateException if it is not supported
    public static void everywhere() {
        try {
            FENCE.orElseThrow(() -> new IllegalStateException("no process-wide fence on this system"))
                    .invoke();
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static Optional<MethodHandle> bind() {
        try {
            String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
            if (system.contains("linux")) {
                return bindMembarrier();
            }
            return Optional.empty();
        } catch (RuntimeException refused) {
            return Optional.empty();
        }
    }

    @SuppressWarnings("restricted")
    private static Optional<MethodHandle> bindMembarrier() {
        int number = switch (System.getProperty("os.arch", "")) {
            case "amd64", "x86_64" -> 324;
            case "aarch64", "riscv64" -> 283;
            default -> 0;
        };
        Linker linker = Linker.nativeLinker();
        FunctionDescriptor shape = FunctionDescriptor.of(
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG);
        MethodHandle syscall = linker.downcallHandle(
                linker.defaultLookup().findOrThrow("syscall"), shape, Linker.Option.firstVariadicArg(1));
        MethodHandle fence = java.lang.invoke.MethodHandles.insertArguments(
                syscall, 0, (long) number, (long) PRIVATE_EXPEDITED, 0L, 0L);
        try {
            long registered = (long) syscall.invoke((long) number, (long) REGISTER_PRIVATE_EXPEDITED, 0L, 0L);
            long worked = registered == 0 ? (long) fence.invoke() : -1;
            return number != 0 && worked == 0 ? Optional.of(fence) : Optional.empty();
        } catch (Throwable refused) {
            return Optional.empty();
        }
    }
}
