package io.cistern.spark;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.pressure.Retry;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/// Extends [Retry] to tasks with a limit of their own. Waiting for other tasks doesn't help if the limit
/// refuses, so the input is split at once.
final class LimitRetry {
    private LimitRetry() {}

    static <T, R, X extends Throwable> List<R> withRetry(
            T input, Function<? super T, ? extends List<? extends T>> split, Retry.Body<? super T, ? extends R, X> body)
            throws X {
        try {
            return Retry.<T, R, X>withRetry(input, split, body);
        } catch (DeviceOutOfMemoryException refused) {
            List<? extends T> parts = split.apply(input);
            if (parts.size() < 2) {
                throw refused;
            }
            return ofParts(parts, split, body);
        }
    }

    private static <T, R, X extends Throwable> List<R> ofParts(
            List<? extends T> parts,
            Function<? super T, ? extends List<? extends T>> split,
            Retry.Body<? super T, ? extends R, X> body)
            throws X {
        List<R> results = new ArrayList<>();
        for (T part : parts) {
            results.addAll(LimitRetry.<T, R, X>withRetry(part, split, body));
        }
        return results;
    }
}
