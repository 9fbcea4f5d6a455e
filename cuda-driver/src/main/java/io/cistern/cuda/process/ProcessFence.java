package io.cistern.cuda.process;

/// Issues a memory fence on every processor that runs a thread of this process; only the caller pays for it.
///
/// Two threads that each write one word and then read the other's word both need a fence between write and
/// read. If one side is hot and the other rare, the rare side can pay for both. The hot side only keeps its
/// instructions in order ([java.lang.invoke.VarHandle#acquireFence], which costs nothing on x86), and the rare
/// side calls [#everywhere], which interrupts the other threads. On Linux that is `membarrier(2)` (4.14,
/// private expedited). If the system refuses the call (an older system, a sandbox that filters calls, native
/// access denied), it stops all threads instead, as for a dump of their stacks, which takes longer.
///
/// **Why stopping orders.** HotSpot dumps stacks at a safepoint. A thread that runs Java code reaches the
/// safepoint by a poll, at which it waits for a lock. A thread outside Java code executes a full fence on its
/// way back, before it checks whether a safepoint is under way. So the stopping thread sees everything that a
/// stopped thread did before, and the stopped thread afterwards sees everything that the stopping thread did
/// before.
///
/// **Threads.** Any, at any time.
public final class ProcessFence {
    private static final int REGISTER_PRIVATE_EXPEDITED = 1 << 4;
    private static final int PRIVATE_EXPEDITED = 1 << 3;

    private static final boolean SUPPORTED = SystemCall.isLinux() && SystemCall.isNumbered();

    /// The system is asked at the first fence: linking a process's first native function takes long, and would
    /// slow down the start of the program.
    private static final class Membarrier {
        static final boolean WORKS = succeeds(REGISTER_PRIVATE_EXPEDITED) && succeeds(PRIVATE_EXPEDITED);
    }

    private ProcessFence() {}

    /// Returns whether [#everywhere] works here. Costs nothing; the answer never changes.
    public static boolean isSupported() {
        return SUPPORTED;
    }

    /// Orders everything that any thread of this process did before against everything that it does after.
    ///
    /// @throws IllegalStateException if it is not [supported][#isSupported]
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
            return false; // a class whose initialiser failed, for lack of Java heap, fails forever
        }
    }

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
