package io.cistern.cli.top;

import static io.cistern.cli.common.ResultWriter.object;

import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A thread of the watched program that waits in a call of Cistern: for a lock, for memory, or for the GPU.
///
/// @param state its state, by the name of the `Thread.State` constant
/// @param in the method of Cistern in which it waits
record WaitingThread(String name, String state, String in) {
    private static final String CISTERN = "io.cistern.";
    /// Threads that Cistern itself starts rest between their work, so they are left out.
    private static final String OWN_THREADS = "cistern-";
    private static final int DEPTH = 32;

    static List<WaitingThread> of(ThreadMXBean threads) {
        return Arrays.stream(threads.dumpAllThreads(false, false, DEPTH))
                .filter(thread -> thread.getThreadState() != Thread.State.RUNNABLE
                        && !thread.getThreadName().startsWith(OWN_THREADS))
                .flatMap(thread -> of(thread).stream())
                .toList();
    }

    Map<String, @Nullable Object> fields() {
        return object("thread", name, "state", state, "in", in);
    }

    /// A thread waits in Cistern if its innermost method outside the JDK is Cistern's.
    private static Optional<WaitingThread> of(ThreadInfo thread) {
        return Arrays.stream(thread.getStackTrace())
                .filter(frame -> !isOfTheJdk(frame.getClassName()))
                .findFirst()
                .filter(frame -> frame.getClassName().startsWith(CISTERN))
                .map(frame -> new WaitingThread(
                        thread.getThreadName(),
                        thread.getThreadState().name(),
                        frame.getClassName() + "." + frame.getMethodName()));
    }

    private static boolean isOfTheJdk(String className) {
        return className.startsWith("java.") || className.startsWith("jdk.") || className.startsWith("sun.");
    }
}
