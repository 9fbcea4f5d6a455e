package io.cistern.pressure;

import io.cistern.errors.DeviceOutOfMemoryException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Runs a piece of work of a [Task], and repeats it while memory is short, with smaller parts if needed.
///
/// ```java
/// List<Table> joined = Retry.withRetry(rows, Rows::halves, part -> {
///     try (DeviceBuffer scratch = …) {               // frees its memory if it throws
///         return join(part, scratch);
///     }
/// });
/// ```
///
/// **The body** is called with the input. If it throws [RetryOom], it is called again with the same input;
/// if it throws [SplitAndRetryOom], it is called with each part of the input, in order. Any other exception
/// ends the whole run. Before the body throws, it must free the memory that it allocated. Its inputs should
/// be [spillable][SpillableBuffer].
///
/// **Parts** that are [AutoCloseable] are closed after use, on success and on failure; only the caller
/// closes the input itself. If the run fails, results that are [AutoCloseable] are closed.
///
/// If the calling thread is in no task, the body runs once.
public final class Retry {
    private Retry() {}

    /// Runs a body on an input that can be split.
    ///
    /// @param input the input, which the caller keeps
    /// @param split splits an input into two or more parts, in order; returns no part, or one, if it can't be
    ///     split
    /// @param body the work on the input or on a part
    /// @return the results of the parts, in order; one result if the input was not split
    /// @throws DeviceOutOfMemoryException if the input or a part has to be split but can't be; the message
    ///     says what was tried
    /// @throws X if the body throws it
    public static <T, R, X extends Throwable> List<R> withRetry(
            T input, Function<? super T, ? extends List<? extends T>> split, Body<? super T, ? extends R, X> body)
            throws X {
        return new Pieces<T, R, X>(input, split, body).run();
    }

    /// Runs a body whose input can't be split.
    ///
    /// @param body the work
    /// @return its result
    /// @throws DeviceOutOfMemoryException if the body could go on only with a smaller input; the message
    ///     says what was tried
    /// @throws X if the body throws it
    public static <R, X extends Throwable> R withRetry(ScopedValue.CallableOp<? extends R, X> body) throws X {
        return Retry.<Boolean, R, X>withRetry(true, _ -> List.of(), _ -> body.call())
                .getFirst();
    }

    /// Work on an input or a part of one.
    ///
    /// @param <T> the type of the input
    /// @param <R> the type of the result
    /// @param <X> the type of exception that it throws
    @FunctionalInterface
    public interface Body<T, R, X extends Throwable> {
        /// Does the work on an input or a part.
        ///
        /// @param part the input or part
        /// @throws X if the work fails
        R apply(T part) throws X;
    }

    /// The remaining pieces and the results so far.
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
            try {
                while (!left.isEmpty()) {
                    tryOne(left.element());
                }
                return results;
            } catch (Throwable failure) {
                left.forEach(piece -> suppressing(failure, piece::done));
                results.forEach(result -> suppressing(failure, () -> Piece.close(result)));
                throw failure;
            }
        }

        private static void suppressing(Throwable failure, Runnable close) {
            try {
                close.run();
            } catch (RuntimeException | Error another) {
                failure.addSuppressed(another);
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
            return told.task() + " can't split its input further, and " + told.others()
                    + "; before that it rolled back " + retries + " times, split " + splits + " times and finished "
                    + results.size() + " parts";
        }
    }

    /// The input or a part of it.
    ///
    /// @param isOwn whether it was created here, by a split
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
