package io.cistern.internal.reclaim;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Makes sure that nobody gives a device work while live memory moves: for a moment an address has no
/// memory, and a kernel that uses it then ends the context.
///
/// 1. A program that registered pauses is asked; all of them must agree.
/// 2. Without any, a thread that alone uses the device memory needs none: it is here, and gives no work.
///
/// **Threads.** Any; pauses are asked and ended on the thread that compacts, under no lock.
public final class ProgramPause {
    /// Stops a program.
    @FunctionalInterface
    public interface Pause {
        /// Returns what ends the pause, or null if the program can't stop now.
        @Nullable
        Runnable begin(int device);
    }

    private final List<Pause> pauses = new CopyOnWriteArrayList<>();
    private final BooleanSupplier isAlone;

    /// @param isAlone whether the calling thread alone uses the device memory
    public ProgramPause(BooleanSupplier isAlone) {
        this.isAlone = isAlone;
    }

    /// Asks a pause from now on.
    ///
    /// @return removes it
    public Runnable add(Pause pause) {
        pauses.add(pause);
        return () -> pauses.remove(pause);
    }

    /// Work for a paused program.
    @FunctionalInterface
    interface Work<T> {
        /// Does it.
        T run();
    }

    /// Does something while the program pauses.
    ///
    /// @param promised whether the caller promises that other threads give no work
    /// @param refused what to return instead if the program can't pause, told why
    <T> T during(int device, boolean promised, Work<T> work, Function<String, T> refused) {
        List<Pause> asked = List.copyOf(pauses);
        if (asked.isEmpty()) {
            return promised || isAlone.getAsBoolean()
                    ? work.run()
                    : refused.apply("several threads use the device memory: Listeners.onCompaction lets it pause them");
        }
        return during(device, asked, work, refused);
    }

    private static <T> T during(int device, List<Pause> asked, Work<T> work, Function<String, T> refused) {
        if (asked.isEmpty()) {
            return work.run();
        }
        Runnable end = asked.getFirst().begin(device);
        if (end == null) {
            return refused.apply("the program could not pause");
        }
        try {
            return during(device, asked.subList(1, asked.size()), work, refused);
        } finally {
            end.run();
        }
    }
}
