package io.cistern.internal.reclaim;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Ensures that no thread gives a device work while live memory moves. For a moment an address has no memory,
/// and a kernel that uses the address then ends the context.
///
/// 1. If the program registered pauses, all of them are asked and must agree.
/// 2. If it registered none, live memory moves only if one thread alone uses the device memory: that thread is
///    here, and gives no work.
///
/// **Threads.** Any; pauses are asked and ended on the thread that compacts, under no lock.
public final class ProgramPause {
    /// Stops the program's threads.
    @FunctionalInterface
    public interface Pause {
        /// Returns an action that ends the pause, or null if the program can't stop now.
        @Nullable
        Runnable begin(int device);
    }

    private final List<Pause> pauses = new CopyOnWriteArrayList<>();
    private final BooleanSupplier isAlone;

    /// @param isAlone whether the calling thread alone uses the device memory
    public ProgramPause(BooleanSupplier isAlone) {
        this.isAlone = isAlone;
    }

    /// Adds a pause, which is asked from now on.
    ///
    /// @return an action that removes the pause
    public Runnable add(Pause pause) {
        pauses.add(pause);
        return () -> pauses.remove(pause);
    }

    /// Work to do while the program pauses.
    @FunctionalInterface
    interface Work<T> {
        /// Does the work.
        T run();
    }

    /// Does some work while the program pauses.
    ///
    /// @param promised whether the caller promises that other threads give the device no work
    /// @param refused makes the result from the reason, if the program can't pause
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
