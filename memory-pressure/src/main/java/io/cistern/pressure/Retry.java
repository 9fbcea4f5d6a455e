package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Runs a piece of work of a [Task] again for as long as memory is short, with less at a time if need be.
///
/// ```java
/// List<Table> joined = Retry.withRetry(rows, Rows::halves, part -> {
///     try (DeviceBuffer scratch = …) {               // whatever it makes, it frees when it throws
///         return join(part, scratch);
///     }
/// });
/// ```
///
/// **The body** is called with the input, or with its parts in order, once for each part that succeeds, and once
/// more for each time that it had to stop. When it throws, it must have freed what it made, and its inputs should
/// be such that they can be [spilled][SpillableBuffer]. What it throws other than [RetryOom] and
/// [SplitAndRetryOom] ends it all.
///
/// **Parts** that are [AutoCloseable] are closed when they are done with, in success and failure; the input
/// itself stays the caller's. If it fails for good, results that are [AutoCloseable] are closed.
///
/// On a thread that is in no task the body runs once.
public final class Retry {
    private Retry() {}

    /// Runs a body on an input that can be split.
    ///
    /// @param split makes an input into two parts or more, in order; nothing, or one part, if it can't be
    ///     split
    /// @return the results of the parts, in order; one if it was not split
    /// @throws DeviceOutOfMemoryException if a part that can't be split is refused for good, with what was
    ///     tried
    /// @throws X what the body throws
    public static <T, R, X extends Throwable> List<R> withRetry(
            T input, Function<? super T, ? extends List<? extends T>> split, Body<? super T, ? extends R, X> body)
            throws X {
        return new Pieces<T, R, X>(input, split, body).run();
    }

    /// Runs a body that can't do with less at a time.
    ///
    /// @throws DeviceOutOfMemoryException if it is refused for good, with what was tried
    /// @throws X what the body throws
    public static <R, X extends Throwable> R withRetry(ScopedValue.CallableOp<? extends R, X> body) throws X {
        return Retry.<Boolean, R, X>withRetry(true, _ -> List.of(), _ -> body.call())
                .getFirst();
    }

    /// Work on an input or a part of one.
    ///
    /// @param <T> the input
    /// @param <R> the result
    /// @param <X> what it throws
    @FunctionalInterface
    public interface Body<T, R, X extends Throwable> {
        /// Does it.
        ///
        /// @throws X as it likes
        R apply(T part) throws X;
    }

    /// The pieces that are left and the results so far.
    private static final class Pieces<T, R, X extends Throwable> {
        private final Function<? super T, ? extends List<? extends T>> split;
        private final Body<? super T, ? extends R, X> body;
        private final Deque<Piece<T>> left = new ArrayDeque<>();
        private final List<R> results = new ArrayList<>();
        private final @Nullable TaskThread thread = TaskThread.CURRENT.get();
        private int retries;
        private int splits;

        Pieces(T input, Function<? super T, ? extends List<? extends T>> split, Body<? super T, ? extends R, X> body) {
            this.split = split;
            this.body = body;
            left.add(new Piece<>(input, false));
        }

        List<R> run() throws X {
            boolean done = false;
            try {
                while (!left.isEmpty()) {
                    tryOne(left.element());
                }
                done = true;
                return results;
            } finally {
                if (!done) {
                    left.forEach(Piece::done);
                    results.forEach(Piece::close);
                }
            }
        }

        private void tryOne(Piece<T> piece) throws X {
            try {
                if (thread != null) {
                    thread.attemptBegins();
                }
                results.add(body.apply(piece.part()));
                left.remove();
                piece.done();
                if (thread != null) {
                    thread.attemptSucceeded();
                }
            } catch (RetryOom told) {
                retries++;
                told.blockUntilReady();
            } catch (SplitAndRetryOom told) {
                replaceByParts(piece, told);
            }
        }

        private void replaceByParts(Piece<T> piece, SplitAndRetryOom told) {
            List<? extends T> parts = split.apply(piece.part());
            if (parts.size() < 2) {
                throw new DeviceOutOfMemoryException(told.byteSize(), told.device(), tried(told), told);
            }
            splits++;
            left.remove();
            parts.reversed().forEach(part -> left.push(new Piece<>(part, true)));
            piece.done();
        }

        private String tried(SplitAndRetryOom told) {
            return told.task() + " had all to itself and can't split its input further; before it rolled back "
                    + retries + " times, split " + splits + " times and finished " + results.size() + " parts";
        }
    }

    /// A part of the input.
    ///
    /// @param isOwn whether it was made here
    private record Piece<T>(T part, boolean isOwn) {
        void done() {
            if (isOwn) {
                close(part);
            }
        }

        static void close(@Nullable Object closed) {
            if (closed instanceof AutoCloseable closeable) {
                try {
                    closeable.close();
                } catch (RuntimeException e) {
                    throw e;
                } catch (Exception e) {
                    throw new IllegalStateException("closing " + closed, e);
                }
            }
        }
    }
}
