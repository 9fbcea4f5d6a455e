package io.cistern.cuda.process;

/// A memory fence on every processor that runs a thread of this process, paid by the caller alone.
///
/// Two threads that each write one word and then read the other's need a fence between write and read on both sides.
/// Where one side is hot and the other rare, the rare side can pay for both: the hot side keeps only the order of its
/// instructions ([java.lang.invoke.VarHandle#acquireFence], which costs nothing on x86), and the rare side calls
/// [#everywhere], which interrupts the others. That is `membarrier(2)` on Linux (4.14, private expedited): some
/// microseconds. Where the system refuses the call (an older one, a sandbox that filters calls, native access denied),
/// all threads are stopped instead, as for a dump of their stacks: tens of microseconds and more.
///
/// **Why stopping orders.** HotSpot dumps stacks at a safepoint. A thread that runs Java code reaches it by a poll, at
/// which it waits for a lock; one that is outside Java code has a full fence on its way back, before it looks whether
/// a safepoint is under way. So what a thread did before is seen by the one who stopped it, and what that one did
/// before is seen by the thread afterwards.
///
/// **Threads.** Any, at any time.
public final class ProcessFence {
    private static final int REGISTER_PRIVATE_EXPEDITED = 1 << 4;
    private static final int PRIVATE_EXPEDITED = 1 << 3;

    private static final boolean SUPPORTED = SystemCall.isLinux() && SystemCall.isNumbered();

    /// Asked of the system at the first fence: to link a process's first native function takes long, which the
    /// start of a program can do without.
    private static final class Membarrier {
        static final boolean WORKS = succeeds(REGISTER_PRIVATE_EXPEDITED) && succeeds(PRIVATE_EXPEDITED);
    }

    private ProcessFence() {}

    /// Whether [#everywhere] works here. Takes no time, and never changes.
    public static boolean isSupported() {
        return SUPPORTED;
    }

    /// Orders all that any thread of this process did before, against all that it does after.
    ///
    /// @throws IllegalStateException if it is not supported
    public static void everywhere() {
        if (!SUPPORTED) {
            throw new IllegalStateException("no process-wide fence on this system");
        }
        if (!membarrier()) {
            stopAll();
        }
    }

    private static boolean membarrier() {
        try {
            return Membarrier.WORKS && succeeds(PRIVATE_EXPEDITED);
        } catch (LinkageError unusable) {
            return false; // an initialiser that once lacked Java heap fails for ever
        }
    }

    /// The slow way.
    static void stopAll() {
        Thread.getAllStackTraces();
    }

    private static boolean succeeds(int command) {
        try {
            return SystemCall.MEMBARRIER.call(command, 0, 0) == 0;
        } catch (SystemCallException | IllegalCallerException refused) {
            return false;
        }
    }
}
