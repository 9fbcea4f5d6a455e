package io.cistern.internal.threads;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;

/// Notifies the program that one of its threads waits inside Cistern. The program may be waiting for that thread,
/// for example for a lock that it holds.
///
/// It serves the whole process: a thread that waits for memory of one device memory may hold a lock that a
/// pause of another device memory waits for.
///
/// **Threads.** Any.
public final class RestingThreads {
    private static final List<Supplier<? extends Runnable>> TOLD = new CopyOnWriteArrayList<>();

    private RestingThreads() {}

    /// Adds a function that is called on each thread before it waits, under no lock. It returns an action, which
    /// is run on the same thread after the wait.
    ///
    /// @return an action that removes the function
    public static Runnable add(Supplier<? extends Runnable> told) {
        TOLD.add(told);
        return () -> TOLD.remove(told);
    }

    /// Waits as [#during(Supplier)] does.
    public static void during(Runnable wait) {
        boolean _ = during(() -> {
            wait.run();
            return true;
        });
    }

    /// Waits as a paused thread.
    ///
    /// @param wait waits for another thread; the caller holds no lock
    public static <T> T during(Supplier<T> wait) {
        return TOLD.isEmpty() ? wait.get() : during(List.copyOf(TOLD), wait);
    }

    private static <T> T during(List<Supplier<? extends Runnable>> told, Supplier<T> wait) {
        if (told.isEmpty()) {
            return wait.get();
        }
        Runnable end = told.getFirst().get();
        try {
            return during(told.subList(1, told.size()), wait);
        } finally {
            end.run();
        }
    }
}
