package io.cistern.internal.reclaim;

import io.cistern.internal.threads.RestingThreads;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Lets live memory move only while the program has said that it is paused: `Listeners.WorkPause` has the contract.
///
/// 1. Without a registered pause, nothing moves.
/// 2. One thread at a time asks for a pause. Device work that Cistern itself enqueues during an allocation,
///    such as a spill, excludes that: see [#whileNothingMoves].
/// 3. All registered pauses are asked, and must agree within a bound.
///
/// **Threads.** Any; pauses are asked and ended on the thread that compacts. The exclusion is not a lock: each
/// wait for it has a bound.
public final class ProgramPause implements AutoCloseable {
    /// The message that says how to allow it.
    static final String NOT_ALLOWED = "live memory moves only while the program pauses; register a pause"
            + " with Listeners.onCompaction: WorkPause.ofOneThread() suffices if one thread does all work";

    /// How long a pause may take to begin: longer than threads usually hold a lock to enqueue work, and
    /// shorter than other threads wait for their turn to reclaim.
    private static final long PATIENCE_NANOS = 5_000_000_000L;

    private static final int ALL = Integer.MAX_VALUE;

    /// Stops the program's threads.
    public interface Pause {
        /// Returns an action that ends the pause, or null if the program can't stop in time.
        @Nullable
        Runnable begin(int device, Duration atMost);

        /// Called on a thread that is about to wait. Returns an action for the end of the wait.
        Runnable rest();
    }

    private record Registered(Pause pause, Runnable tellNoMore) {}

    private final List<Registered> pauses = new CopyOnWriteArrayList<>();

    /// A thread that asks for a pause takes all permits; a thread that enqueues device work takes one.
    private final Semaphore still = new Semaphore(ALL, true);

    private volatile @Nullable Thread mover;

    /// Adds a pause, which is asked from now on.
    ///
    /// @return an action that removes the pause
    public Runnable add(Pause pause) {
        Registered registered = new Registered(pause, RestingThreads.add(pause::rest));
        pauses.add(registered);
        return () -> remove(registered);
    }

    private void remove(Registered registered) {
        registered.tellNoMore.run();
        pauses.remove(registered);
    }

    /// Does work while the program pauses.
    ///
    /// @param refused makes the result from the reason, if the program does not pause
    <T> T during(int device, Supplier<T> work, Function<String, T> refused) {
        List<Registered> asked = List.copyOf(pauses);
        if (asked.isEmpty()) {
            return refused.apply(NOT_ALLOWED);
        }
        return RestingThreads.during(() -> alone(device, asked, work, refused));
    }

    private <T> T alone(int device, List<Registered> asked, Supplier<T> work, Function<String, T> refused) {
        if (Thread.currentThread().equals(mover) || !acquire(ALL)) {
            return refused.apply("another thread is moving or spilling memory");
        }
        mover = Thread.currentThread();
        try {
            return during(device, asked, System.nanoTime() + PATIENCE_NANOS, work, refused);
        } finally {
            mover = null;
            still.release(ALL);
        }
    }

    private static <T> T during(
            int device, List<Registered> asked, long deadline, Supplier<T> work, Function<String, T> refused) {
        if (asked.isEmpty()) {
            return work.get();
        }
        Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
        Runnable end = asked.getFirst().pause.begin(device, left);
        if (end == null) {
            return refused.apply("the program did not pause within " + PATIENCE_NANOS / 1_000_000_000L + " s");
        }
        try {
            return during(device, asked.subList(1, asked.size()), deadline, work, refused);
        } finally {
            end.run();
        }
    }

    /// Enqueues work on live memory, for example during an allocation, while nothing moves.
    ///
    /// @param otherwise the result if live memory moved too long for the work to be done
    public <T> T whileNothingMoves(Supplier<T> work, T otherwise) {
        if (Thread.currentThread().equals(mover) || !RestingThreads.during(() -> acquire(1))) {
            return otherwise;
        }
        try {
            return work.get();
        } finally {
            still.release();
        }
    }

    private boolean acquire(int permits) {
        try {
            return still.tryAcquire(permits, PATIENCE_NANOS, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return still.tryAcquire(permits);
        }
    }

    /// Removes all pauses.
    @Override
    public void close() {
        pauses.forEach(this::remove);
    }
}
